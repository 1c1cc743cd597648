"""The log: ``commit`` (bytes), ``log`` (the fence), ``checkpoint`` (opening), ``sequencer`` (group commit), ``terms``."""
