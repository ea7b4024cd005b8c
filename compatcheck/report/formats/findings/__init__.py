"""The formats that hold findings alone; each file is one."""
