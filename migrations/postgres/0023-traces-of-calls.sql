-- phase: expand
-- The trace that a queued call belongs to, as its two headers were, with a blank between them; null: nobody traced.
ALTER TABLE router_call ADD COLUMN trace text;
