"""The passes of import, one file each."""
