/** The two channels that the stores talk through, and the ways to use them: with an audit line, and in small slices. */
import type { AuditEntry } from '../../../../domain/accounts/audit.ts'
import type { ReadOperations } from '../operations/read-operations.ts'
import type { WriteOperations } from '../operations/write-operations.ts'
import type { Channel } from '../threads/channel.ts'

export interface StoreChannels {
  readonly write: Channel<WriteOperations>
  readonly read: Channel<ReadOperations>
}

// About ten statements per removed job: a slice keeps the writer for a few milliseconds.
const SLICE = 100

/** Repeats `sweep` with small limits until it finds less than it was allowed, or `limit` is reached; returns the sum. */
export async function inSlices(limit: number, sweep: (sliceLimit: number) => Promise<number>): Promise<number> {
  let done = 0
  while (done < limit) {
    const sliceLimit = Math.min(SLICE, limit - done)
    const found = await sweep(sliceLimit)
    done += found
    if (found < sliceLimit) break
  }
  return done
}

/** The same for a sweep that tells what it found. */
export async function gatherInSlices<Found>(
  limit: number,
  sweep: (sliceLimit: number) => Promise<readonly Found[]>,
): Promise<Found[]> {
  const all: Found[] = []
  await inSlices(limit, async (sliceLimit) => {
    const found = await sweep(sliceLimit)
    all.push(...found)
    return found.length
  })
  return all
}

/** For sweeps that go on until nothing is left. */
export const UNLIMITED = Number.POSITIVE_INFINITY

/** Channels whose every write takes a line of the audit log along, in the same transaction. */
export function toAuditedChannels({ write, read }: StoreChannels, entry: AuditEntry): StoreChannels {
  return {
    read,
    write: {
      stats: () => write.stats(),
      close: () => write.close(),
      failed: write.failed,
      call<Name extends keyof WriteOperations & string>(name: Name, input: unknown, weight?: number) {
        // What the inner operation answers is what comes back.
        return write.call('audited', { name, input, entry }, weight) as Promise<ReturnType<WriteOperations[Name]>>
      },
    },
  }
}
