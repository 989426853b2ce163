-- Zipf with exponent 0.8 over all nodes (LinkBench FBWorkload.properties), by inversion: u^(1/(1-s)).
\set u random(1, 1000000000) / 1000000000.0
\set id permute(least(:nodes - 1, int(:nodes * pow(:u, 5.0))), :nodes, 11) + 1
\set type 123456789 + random(0, 1)
SELECT id1, id2, link_type, visibility, data, time, version FROM linktable
WHERE id1 = :id AND link_type = :type AND time >= 0 AND time <= 9223372036854775807 AND visibility = 1
ORDER BY time DESC LIMIT 10000;
