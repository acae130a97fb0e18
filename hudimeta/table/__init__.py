"""The table on storage: its properties, its file names, its file groups and slices."""

__all__ = [
    "bootstrap_index",  # which source files stand behind skeletons
    "clustering_plan",  # the plan of a clustering
    "column_defaults",  # default values of columns
    "compaction_plan",  # the plan of a compaction
    "create",  # creating a table, with nothing in it
    "discovery",  # partitions and files by listing storage
    "file_names",  # names of base files and log files
    "globs",  # patterns of paths
    "key_file",  # file slices as the look-up of keys sees them
    "key_generator",  # which key generator a table uses
    "merge_settings",  # which of two versions of a row wins
    "modes",  # how a table wants its metadata table used
    "places",  # from paths to tables and their partitions
    "positions",  # sorting rows out by what they have in common
    "properties",  # hoodie.properties as a value
    "properties_file",  # reading and replacing hoodie.properties
    "remembered",  # what never changes of a table
    "slices",  # file slices out of a listing
    "stated_keys",  # which keys a commit added
    "stated_sizes",  # a listing against what commits say
    "text_arrays",  # cutting arrays of texts
    "visibility",  # which files a moment sees
]
