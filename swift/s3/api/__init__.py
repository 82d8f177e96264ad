"""Operations of the S3 API, a module for each group, and their common parts."""
