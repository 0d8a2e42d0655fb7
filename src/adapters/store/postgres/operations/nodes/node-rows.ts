/**
 * Which processes live, and which of them does the work that only one may do. Where the time decides, it is never later than the
 * server's own: a process whose clock runs ahead takes nothing that another one still holds.
 */
import type {
  NodeAbout,
  NodeBeat,
  NodeHoldings,
  ServiceNode,
  Singleton,
} from '../../../../../domain/service-nodes/node-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'

type NodeRow = readonly [id: string, startedAt: number, seenAt: number, aliveUntil: number, about: string]

const BEAT = statement(
  'nodes.beat',
  `INSERT INTO node (id, started_at, seen_at, alive_until, about) VALUES ($1, $2, $2, $3, $4)
   ON CONFLICT (id) DO UPDATE SET seen_at = $2, alive_until = $3, about = $4`,
)

export async function beatNode(db: Queryable, { id, now, aliveUntil, about }: NodeBeat): Promise<void> {
  await db.run(BEAT, [id, now.getTime(), aliveUntil.getTime(), JSON.stringify(about)])
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

/** The time that the caller believes in ($3), or the server's if that is earlier. */
export const NO_LATER_THAN_NOW =
  '(SELECT least($3::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint))'

type SingletonRow = readonly [nodeId: string, heldSince: number, heldUntil: number]

const TAKE = statement<SingletonRow>(
  'nodes.take_singleton',
  `INSERT INTO singleton AS held (name, node_id, held_since, held_until) VALUES ($1, $2, $3, $4)
   ON CONFLICT (name) DO UPDATE SET node_id = $2, held_until = $4,
     held_since = CASE WHEN held.node_id = $2 AND held.held_until > $3 THEN held.held_since ELSE $3 END
   WHERE held.node_id = $2 OR held.held_until <= ${NO_LATER_THAN_NOW}
   RETURNING node_id, held_since, held_until`,
)
const FIND = statement<SingletonRow>(
  'nodes.find_singleton',
  'SELECT node_id, held_since, held_until FROM singleton WHERE name = $1',
)

interface TakeRequest {
  readonly name: string
  readonly nodeId: string
  readonly now: Date
  readonly until: Date
}

/** null: its holder left between the two looks. */
export async function takeSingleton(
  db: Queryable,
  { name, nodeId, now, until }: TakeRequest,
): Promise<Singleton | null> {
  const taken = await db.get(TAKE, [name, nodeId, now.getTime(), until.getTime()])
  const row = taken ?? (await db.get(FIND, [name]))
  if (row === undefined) return null
  const [holder, heldSince, heldUntil] = row
  return { name, nodeId: holder, heldSince: new Date(heldSince), heldUntil: new Date(heldUntil) }
}
