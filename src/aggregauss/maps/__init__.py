"""From files to a fine-scale map."""
