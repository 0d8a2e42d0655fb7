-- Which providers may serve a call, in order, as JSON; null: its model's own alone. attempt_index: which of them is tried now.
ALTER TABLE router_call ADD COLUMN plan TEXT;
ALTER TABLE router_call ADD COLUMN attempt_index INTEGER NOT NULL DEFAULT 0;
-- Who served a result where that is to be told, and what the translation left out, as JSON.
ALTER TABLE router_result ADD COLUMN served TEXT;
