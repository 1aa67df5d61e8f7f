"""The machinery of tables and figures: cells and their frame, marks, labels, captions, the style, publishing.

Which there are, and who makes them, is said by each study's ``artifacts``; `sgtune.study.studies` knows all studies.
"""
