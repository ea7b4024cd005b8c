"""Other people's interfaces to ours; each file needs the library it is named after."""
