-- What the run of a job needs of its `extra_data` beside credentials, as JSON text. As with `job_secret`, which from now on
-- outlives the claim, whatever ends the job erases it. `job.needs_extra_data` has two bits: 1 for credentials, 2 for notes.
CREATE TABLE job_notes (
  seq INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;
