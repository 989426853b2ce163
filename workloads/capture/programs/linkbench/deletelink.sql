-- Zipf with exponent 0.741 over all nodes (LinkBench FBWorkload.properties), by inversion: u^(1/(1-s)).
\set u random(1, 1000000000) / 1000000000.0
\set id permute(least(:nodes - 1, int(:nodes * pow(:u, 3.861))), :nodes, 7) + 1
\set k random(1, 3)
\set id2 1 + (:id * 7919 + :k * 104729) % :nodes
\set type 123456789 + :k % 2
-- As LinkBench does unless told to expunge: the link is hidden, and the count lowered.
WITH hidden AS (
    UPDATE linktable SET visibility = 0
    WHERE id1 = :id AND id2 = :id2 AND link_type = :type AND visibility = 1
    RETURNING id1
)
UPDATE counttable SET count = greatest(0, count - 1), version = version + 1
FROM hidden WHERE counttable.id = hidden.id1 AND link_type = :type;
