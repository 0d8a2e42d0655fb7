/**
 * Stored bytes that no record refers to and that no sweep finds. What a process that died was about to remove is found by the sweep after
 * the next start, so one node is started for it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { diskFileOps, openShards } from '../../../src/adapters/blobs/fs/file-ops.ts'
import type { World } from '../world/world.ts'
import { checkBucket } from './check-bucket.ts'
import type { Flaw } from './check-told.ts'
import { readKnownHashes } from './known-hashes.ts'

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
  const known = await readKnownHashes(world, { withCandidates: true })
  const orphans: string[] = []
  const shards = openShards(world.storage.folder, diskFileOps)
  for await (const hashes of shards.list()) orphans.push(...hashes.filter((hash) => !known.has(hash)))
  return orphans
}
