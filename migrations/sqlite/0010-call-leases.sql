-- Who drives a running call, and until when. A call without an owner, or whose lease has lapsed, is taken over.

ALTER TABLE router_call ADD COLUMN owner TEXT;
-- Rises whenever the call is taken: with the owner it is what every write about a running call must name.
ALTER TABLE router_call ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
-- In no index: a renewal then writes the row alone. Running calls are few.
ALTER TABLE router_call ADD COLUMN lease_until INTEGER NOT NULL DEFAULT 0;
-- 1: it may have reached its provider. Kept by stores that have no sent journal of their own.
ALTER TABLE router_call ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE router_call ADD COLUMN stop_asked INTEGER NOT NULL DEFAULT 0;
-- How often it was put back because the node that had taken it was lost.
ALTER TABLE router_call ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
