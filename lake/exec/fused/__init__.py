"""Filters, arithmetic and partial aggregates over a scan, compiled into one loop a query by llvmlite.

    SELECT flag, sum(price * (1 - discount)) FROM items WHERE shipped <= DATE '1998-09-02' GROUP BY flag

    shape      the query without its constants, in tuples       what is not covered has none
    compiler   loops by shape and by kinds of columns, in memory and on disk; a thread that compiles those that are missing
    emit       a shape as LLVM's intermediate code
    partial    batches taken through a loop into partial groups, which HashAggregate merges as those of one more worker

A query starts in the plain way, batch by batch, and goes on with the loop once that is there. A batch in which anything
fails or overflows is left to the plain way, which raises the error or computes in two words.

Source: Neumann, "Efficiently Compiling Efficient Query Plans for Modern Hardware", VLDB 2011; Kohn, Leis and Neumann,
"Adaptive Execution of Compiled Queries", ICDE 2018.
"""
