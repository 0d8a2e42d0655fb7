/**
 * Stored bytes that no record refers to and that no sweep finds. What a process that died was about to remove is found by the sweep after
 * the next start, so one node is started for it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { diskFileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { openShards } from '../../../src/adapters/blobs/fs/shards.ts'
import type { FakeS3 } from '../../support/s3/fake-s3.ts'
import type { World } from '../world/world.ts'
import type { Flaw } from './check-told.ts'

const LOOK_EVERY_MS = 500
const GIVE_UP_MS = 120_000

/** For when all nodes have ended. */
export async function checkBytes(world: World): Promise<Flaw[]> {
  if (world.storage.bucket !== null) return await checkBucket(world, world.storage.bucket)
  if ((await listOrphans(world)).length === 0) return []
  const [sweeper] = world.apis
  await sweeper?.start()
  const giveUpAt = performance.now() + GIVE_UP_MS
  for (;;) {
    const orphans = await listOrphans(world)
    if (orphans.length === 0) break
    if (performance.now() > giveUpAt) {
      const text = `${orphans.length} blobs have no record, such as ${orphans[0]}`
      return [{ kind: 'orphan', text, id: null, at: null }]
    }
    await pause(LOOK_EVERY_MS)
  }
  await sweeper?.terminate()
  return []
}

async function listOrphans(world: World): Promise<string[]> {
  const known = await readKnown(world)
  const orphans: string[] = []
  const shards = openShards(world.storage.folder, diskFileOps)
  for await (const hashes of shards.list()) orphans.push(...hashes.filter((hash) => !known.has(hash)))
  return orphans
}

/** Every object that a record leads to is there. What a process that died has left is listed and removed two days later. */
async function checkBucket(world: World, bucket: FakeS3): Promise<Flaw[]> {
  const client = new Client({ connectionString: world.databaseUrl() })
  await client.connect()
  try {
    const { rows } = await client.query(
      `SELECT hash, object_key FROM blob WHERE EXISTS (SELECT 1 FROM account_blob WHERE account_blob.hash = blob.hash)`,
    )
    const missing = rows.filter(({ object_key }) => !bucket.objects.has(object_key))
    if (missing.length === 0) return []
    const text = `${missing.length} blobs have a record and no object, such as ${missing[0].hash}`
    return [{ kind: 'lost', text, id: null, at: null }]
  } finally {
    await client.end()
  }
}

const WITH_HASHES = ['asset', 'output', 'account_blob', 'job_input', 'router_result', 'router_input', 'blob_candidate']

async function readKnown(world: World): Promise<Set<string>> {
  const client = new Client({ connectionString: world.databaseUrl() })
  await client.connect()
  try {
    const known = new Set<string>()
    for (const table of WITH_HASHES) {
      const { rows } = await client.query(`SELECT DISTINCT hash FROM ${table} WHERE hash IS NOT NULL`)
      for (const { hash } of rows) known.add(hash)
    }
    return known
  } finally {
    await client.end()
  }
}
