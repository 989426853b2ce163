-- LinkBench's tables (Armstrong et al., SIGMOD 2013, section 4.1), in PostgreSQL's types.
CREATE TABLE nodetable (
    id bigserial PRIMARY KEY,
    type int NOT NULL,
    version bigint NOT NULL,
    time bigint NOT NULL,
    data text NOT NULL
);
CREATE TABLE linktable (
    id1 bigint NOT NULL,
    id2 bigint NOT NULL,
    link_type bigint NOT NULL,
    visibility smallint NOT NULL,
    data text NOT NULL,
    time bigint NOT NULL,
    version int NOT NULL,
    PRIMARY KEY (link_type, id1, id2)
);
CREATE INDEX id1_type ON linktable (id1, link_type, visibility, time, id2, version, data);
CREATE TABLE counttable (
    id bigint NOT NULL,
    link_type bigint NOT NULL,
    count int NOT NULL,
    time bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (id, link_type)
);
