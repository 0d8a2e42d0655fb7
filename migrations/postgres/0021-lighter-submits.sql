-- phase: expand
-- Nothing changes here: live and ended jobs have tables of their own, and an insert pays nothing for a trigger whose condition is false.
SELECT 1;
