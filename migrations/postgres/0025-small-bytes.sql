-- phase: expand
-- Nothing changes here: processes that share a database keep all bytes where each of them finds them, in a folder or a bucket.
SELECT 1;
