/** One batch, asked for again when something of its jobs changed, at most once a second. */
import { useEffect } from 'preact/hooks'
import { type Batch, getBatch } from '../../api/batches.ts'
import { greetings, onJobChange, polls } from '../../state/live/live.ts'
import { type Resource, useResource } from '../../state/resource.ts'

const AGAIN_MS = 1000

export function useBatch(id: string): Resource<Batch> {
  const batch = useResource(`batch ${id}`, (signal) => getBatch(id, signal))
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined
    const unhear = onJobChange((change) => {
      if (change.kind === 'snapshot') return
      const changed = change.kind === 'gone' ? change.id : change.job.id
      if (batch.data.peek()?.items.some((item) => item.job_id === changed) !== true) return
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
  const mark = `${greetings.value} ${polls.value}`
  useEffect(() => {
    // After a gap, or while there is no stream.
    if (batch.data.peek() !== null) batch.reload()
  }, [mark])
  return batch
}
