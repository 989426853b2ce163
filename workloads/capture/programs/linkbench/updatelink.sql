-- Zipf with exponent 0.741 over all nodes (LinkBench FBWorkload.properties), by inversion: u^(1/(1-s)).
\set u random(1, 1000000000) / 1000000000.0
\set id permute(least(:nodes - 1, int(:nodes * pow(:u, 3.861))), :nodes, 7) + 1
\set length greatest(1, int(8 * exp(random_gaussian(-4000, 4000, 4.0) / 1000.0)))
\set k random(1, 2)
\set id2 1 + (:id * 7919 + :k * 104729) % :nodes
\set type 123456789 + :k % 2
-- LinkBench's updateLink is its addLink, on a link that is most often there.
WITH added AS (
    INSERT INTO linktable VALUES (:id, :id2, :type, 1, left(repeat('more', 64), :length), :k, 0)
    ON CONFLICT (link_type, id1, id2) DO UPDATE
        SET visibility = 1, data = EXCLUDED.data, time = EXCLUDED.time, version = linktable.version + 1
    RETURNING xmax = 0 AS is_new
)
INSERT INTO counttable SELECT :id, :type, 1, :k, 0 FROM added WHERE is_new
ON CONFLICT (id, link_type) DO UPDATE
    SET count = counttable.count + 1, time = EXCLUDED.time, version = counttable.version + 1;
