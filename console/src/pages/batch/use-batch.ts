/** One batch, asked for again when something of its jobs changed, at most once a second. */
import { useEffect } from 'preact/hooks'
import { type Batch, getBatch } from '../../api/batches.ts'
import { greetings, onJobChange, polls } from '../../state/live/live.ts'
import { type Resource, useReloadOn, useResource } from '../../state/resource.ts'

const AGAIN_MS = 1000

export function useBatch(id: string): Resource<Batch> {
  const batch = useResource(`batch ${id}`, (signal) => getBatch(id, signal))
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined
    const unhear = onJobChange((change) => {
      if (change.kind === 'snapshot') return
      const changed = change.kind === 'gone' ? change.id : change.job.id
      // Before the first answer any job may be one of the batch.
      if (batch.data.peek()?.items.some((item) => item.job_id === changed) === false) return
      due ??= setTimeout(() => {
        due = undefined
        batch.reload()
      }, AGAIN_MS)
    })
    return () => {
      unhear()
      clearTimeout(due)
    }
  }, [batch])
  // After a gap, or while there is no stream.
  useReloadOn(`${greetings.value} ${polls.value}`, batch.reload)
  return batch
}
