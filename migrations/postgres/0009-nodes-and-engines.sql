-- phase: expand
-- The processes of the service. Each writes down again and again until when it counts as alive; one whose time is over is gone.
-- `about` is JSON: its version, its host, and how many workers it has in which pool.
CREATE TABLE node (
  id text COLLATE "C" PRIMARY KEY,
  started_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  alive_until bigint NOT NULL,
  about text NOT NULL
) WITH (fillfactor = 50);

-- Work that one process at a time does, and which one: it holds the name until `held_until`, and has held it since `held_since`.
CREATE TABLE singleton (
  name text COLLATE "C" PRIMARY KEY,
  node_id text COLLATE "C" NOT NULL,
  held_since bigint NOT NULL,
  held_until bigint NOT NULL
) WITH (fillfactor = 50);

-- What engines can run (ComfyUI's object_info), once per content however many engines say the same.
CREATE TABLE engine_catalog (
  hash text COLLATE "C" PRIMARY KEY,
  text text NOT NULL
);

-- Every engine that any process knows of. `node_id` is the process that gives it work, and may until `held_until`. `will` is what
-- an operator wants of it, counted by `will_number` so that the same wish twice is seen twice. `about` is JSON: what it does now.
CREATE TABLE engine (
  id text COLLATE "C" PRIMARY KEY,
  node_id text COLLATE "C" NOT NULL,
  held_until bigint NOT NULL,
  is_shared smallint NOT NULL,
  catalog_hash text COLLATE "C",
  state text COLLATE "C" NOT NULL,
  concurrency integer NOT NULL,
  about text NOT NULL,
  seen_at bigint NOT NULL,
  will text COLLATE "C" NOT NULL DEFAULT 'open',
  will_number integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- How often an attempt failed for a reason that may have been its engine's: such a reason gives a job one more attempt, once.
ALTER TABLE job ADD COLUMN engine_losses integer NOT NULL DEFAULT 0;
