"""Operations of the S3 API: a file for each group, and what they share."""
