"""The user's files: read with bounds, written whole or not at all, named as the user names them."""
