-- The processes of the service. Each writes down again and again until when it counts as alive; one whose time is over is gone.
-- `about` is JSON: its version, its host, and how many workers it has in which pool.
CREATE TABLE node (
  id TEXT PRIMARY KEY,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  alive_until INTEGER NOT NULL,
  about TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Work that one process at a time does, and which one: it holds the name until `held_until`, and has held it since `held_since`.
CREATE TABLE singleton (
  name TEXT PRIMARY KEY,
  node_id TEXT NOT NULL,
  held_since INTEGER NOT NULL,
  held_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What engines can run (ComfyUI's object_info), once per content however many engines say the same.
CREATE TABLE engine_catalog (
  hash TEXT PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;

-- Every engine that any process knows of. `node_id` is the process that gives it work, and may until `held_until`. `will` is what
-- an operator wants of it, counted by `will_number` so that the same wish twice is seen twice. `about` is JSON: what it does now.
CREATE TABLE engine (
  id TEXT PRIMARY KEY,
  node_id TEXT NOT NULL,
  held_until INTEGER NOT NULL,
  is_shared INTEGER NOT NULL,
  catalog_hash TEXT,
  state TEXT NOT NULL,
  concurrency INTEGER NOT NULL,
  about TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  will TEXT NOT NULL DEFAULT 'open',
  will_number INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- What was remembered of engines so far. The name of such a text is no hash; the engine replaces it when it is seen again.
INSERT INTO engine_catalog (hash, text) SELECT key, value FROM meta WHERE key GLOB 'engine:*';
INSERT INTO engine (id, node_id, held_until, is_shared, catalog_hash, state, concurrency, about, seen_at)
SELECT substr(key, 8), '', 0, 1, key, 'lost', 1, '{}', 0 FROM meta WHERE key GLOB 'engine:*';
DELETE FROM meta WHERE key GLOB 'engine:*';

-- How often an attempt failed for a reason that may have been its engine's: such a reason gives a job one more attempt, once.
ALTER TABLE job ADD COLUMN engine_losses INTEGER NOT NULL DEFAULT 0;
