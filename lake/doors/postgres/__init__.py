"""The Postgres door: version 3.0 of the wire protocol, over the node's sessions.

    bytes -> frames (messages of the wire) -> connection (one client's state) -> node -> rows -> bytes

    messages     MESSAGES: every message, its tag and fields; encoder and decoder
    frames       bytes cut into messages; what is not one is 08P01
    sign_in      startup parameters, tokens as passwords
    split        a script cut into statements; statements that only this door has
    parameters   values of bound parameters, text and binary
    text         columns as Postgres writes them in text
    binary       columns as Postgres writes them in binary
    rows         columns to DataRow messages, whole batches at once
    query        statements run, described and paused
    copy         COPY FROM STDIN and TO STDOUT
    connection   one client: its messages in order, its transaction, its errors
    server       the listening socket, cancel requests, draining

Source: PostgreSQL documentation, chapter 55 (Frontend/Backend Protocol). Spec: Doors, Postgres door.
"""
