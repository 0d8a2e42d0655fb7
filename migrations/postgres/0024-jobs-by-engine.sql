-- phase: expand
-- Nothing changes here: ended jobs of all engines have been found by index from the start.
SELECT 1;
