"""What a run leaves behind for people: a timeline, the graph of its tasks, statistics of its scopes."""
