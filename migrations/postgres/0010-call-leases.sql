-- phase: expand
-- Who drives a running call, and until when. A call without an owner, or whose lease has lapsed, is taken over.
ALTER TABLE router_call
  ADD COLUMN owner text COLLATE "C",
  -- Rises whenever the call is taken: with the owner it is what every write about a running call must name.
  ADD COLUMN fence bigint NOT NULL DEFAULT 0,
  -- In no index, so that a renewal need not touch one. Running calls are few.
  ADD COLUMN lease_until bigint NOT NULL DEFAULT 0,
  -- It may have reached its provider: written before the first byte leaves.
  ADD COLUMN sent boolean NOT NULL DEFAULT false,
  ADD COLUMN stop_asked boolean NOT NULL DEFAULT false,
  -- How often it was put back because the node that had taken it was lost.
  ADD COLUMN losses integer NOT NULL DEFAULT 0;
