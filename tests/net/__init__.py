"""The node as a process: starting, stopping, who may lead."""
