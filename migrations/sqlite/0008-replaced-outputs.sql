-- How many outputs of earlier attempts the job has shown and taken back: each attempt starts without any.
ALTER TABLE job ADD COLUMN outputs_replaced INTEGER NOT NULL DEFAULT 0;
