-- Zipf with exponent 0.8 over all nodes (LinkBench FBWorkload.properties), by inversion: u^(1/(1-s)).
\set u random(1, 1000000000) / 1000000000.0
\set id permute(least(:nodes - 1, int(:nodes * pow(:u, 5.0))), :nodes, 11) + 1
\set k random(1, 3)
\set id2 1 + (:id * 7919 + :k * 104729) % :nodes
\set type 123456789 + :k % 2
SELECT id1, id2, link_type, visibility, data, time, version FROM linktable
WHERE id1 = :id AND link_type = :type AND id2 IN (:id2);
