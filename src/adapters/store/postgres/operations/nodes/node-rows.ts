/**
 * Which processes live, and which of them does the work that only one may do. Where the time decides, it is never later than the
 * server's own: a process whose clock runs ahead takes nothing that another one still holds.
 */
import type {
  BeatAnswer,
  NodeAbout,
  NodeBeat,
  NodeHoldings,
  ServiceNode,
} from '../../../../../domain/service-nodes/node-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'

type NodeRow = readonly [id: string, startedAt: number, seenAt: number, aliveUntil: number, about: string]

/** What the server's clock shows, not when its transaction began. */
const SERVER_TIME = '(extract(epoch FROM clock_timestamp()) * 1000)::float8'

/** The time that the caller believes in ($3), or the server's if that is earlier. */
export const NO_LATER_THAN_NOW = `(SELECT least($3::bigint, floor(${SERVER_TIME})::bigint))`

// Names are taken in their order, so that two processes that want the same ones do not wait for each other.
const BEAT = statement<[time: number, held: string[] | null]>(
  'nodes.beat',
  `WITH said AS (
     INSERT INTO node (id, started_at, seen_at, alive_until, about) VALUES ($1, $3, $3, $2, $4)
     ON CONFLICT (id) DO UPDATE SET seen_at = $3, alive_until = $2, about = $4),
   taken AS (
     INSERT INTO singleton AS held (name, node_id, held_since, held_until)
     SELECT name, $1, $3, until FROM unnest($5::text[], $6::bigint[]) AS wanted (name, until) ORDER BY name
     ON CONFLICT (name) DO UPDATE SET node_id = $1, held_until = excluded.held_until,
       held_since = CASE WHEN held.node_id = $1 AND held.held_until > $3 THEN held.held_since ELSE $3 END
     WHERE held.node_id = $1 OR held.held_until <= ${NO_LATER_THAN_NOW}
     RETURNING name)
   SELECT ${SERVER_TIME}, (SELECT array_agg(name) FROM taken)`,
)

export async function beatNode(db: Queryable, beat: NodeBeat): Promise<BeatAnswer> {
  const { id, now, aliveUntil, about, wanted = [] } = beat
  const row = await db.get(BEAT, [
    ...[id, aliveUntil.getTime(), now.getTime(), JSON.stringify(about)],
    wanted.map(({ name }) => name),
    wanted.map(({ until }) => until.getTime()),
  ])
  const [time, held] = row ?? [now.getTime(), null]
  return { time: new Date(time), held: held ?? [] }
}

const LEAVE = statement(
  'nodes.leave',
  'WITH freed AS (DELETE FROM singleton WHERE node_id = $1) DELETE FROM node WHERE id = $1',
)

export async function leaveNode(db: Queryable, nodeId: string): Promise<void> {
  await db.run(LEAVE, [nodeId])
}

const LIST = statement<NodeRow>(
  'nodes.list',
  'SELECT id, started_at, seen_at, alive_until, about FROM node ORDER BY id',
)

export async function listNodes(db: Queryable): Promise<ServiceNode[]> {
  return (await db.all(LIST)).map(([id, startedAt, seenAt, aliveUntil, about]) => ({
    id,
    startedAt: new Date(startedAt),
    seenAt: new Date(seenAt),
    aliveUntil: new Date(aliveUntil),
    about: JSON.parse(about) as NodeAbout,
  }))
}

// Held jobs and running calls are never more than there are workers and connections: counting them all is cheap.
const HOLDINGS = statement<[nodeId: string, jobs: number, calls: number, names: string[]]>(
  'nodes.holdings',
  `SELECT node_id, sum(jobs), sum(calls), array_agg(name ORDER BY name) FILTER (WHERE name IS NOT NULL)
   FROM (
     SELECT worker_id AS node_id, count(*) AS jobs, 0 AS calls, NULL AS name FROM job
     WHERE status IN ('running', 'canceling') AND worker_id IS NOT NULL GROUP BY worker_id
     UNION ALL
     SELECT owner, 0, count(*), NULL FROM router_call
     WHERE state = 'running' AND owner IS NOT NULL AND lease_until > $1 GROUP BY owner
     UNION ALL
     SELECT node_id, 0, 0, name FROM singleton WHERE held_until > $1
   ) AS held GROUP BY node_id ORDER BY node_id`,
)

export async function readHoldings(db: Queryable, now: Date): Promise<NodeHoldings[]> {
  return (await db.all(HOLDINGS, [now.getTime()])).map(([nodeId, jobs, calls, names]) => ({
    nodeId,
    jobs: Number(jobs),
    calls: Number(calls),
    names: names ?? [],
  }))
}

const FORGET = statement('nodes.forget', 'DELETE FROM node WHERE alive_until < $1')

export function forgetNodes(db: Queryable, deadBefore: Date): Promise<number> {
  return db.run(FORGET, [deadBefore.getTime()])
}
