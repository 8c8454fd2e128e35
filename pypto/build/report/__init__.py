"""What a compilation leaves behind for people: its passes, its memory, its times."""
