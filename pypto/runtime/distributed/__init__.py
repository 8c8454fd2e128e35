"""Running distributed programs on the simulator: one process per rank, windows in shared memory.

`program` and `worker` belong to the caller's process; `supervisor` starts the ranks and watches over them; `rank` and
`collectives` run in them. `plan` turns the HOST entry into the steps of every rank before any process is started.
"""
