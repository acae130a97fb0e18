"""Past one machine: what work costs at sizes that no machine here has, by a model whose constants this machine measures.

phases.py    what is measured: one phase of work each, at some sizes
measured.py  runs a phase in a process of its own: CPU, memory, requests and bytes
wide.py      the driver of a write by thousands of tasks
model.py     lines through the measured sizes, their error at a size that was left out, and what they say of other sizes
places.py    the tables, stores and clusters they are asked of, and what breaks first there
"""
