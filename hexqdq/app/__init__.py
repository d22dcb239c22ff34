"""What stands on top of the rooms: session, explain, demo."""
