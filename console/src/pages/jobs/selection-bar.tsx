/** What can be done to the rows that were chosen. */
import { zipHref } from '../../api/jobs.ts'
import { isCancelable } from '../../api/summary.ts'
import { BASE } from '../../base.ts'
import { showToast } from '../../components/overlay/toast.tsx'
import { hrefOf } from '../../routes.ts'
import { cancelMany } from '../../state/deeds.ts'
import { jobOf } from '../../state/live/live.ts'
import { plural } from '../../text/format.ts'

/** The service takes no more in one archive. */
const MAX_ZIPPED = 100

function hasOutputs(id: string): boolean {
  return (jobOf(id)?.outputs ?? 0) > 0
}

/** What these jobs made, as one file. */
export function downloadJobs(ids: readonly string[]): void {
  const made = ids.filter(hasOutputs)
  if (made.length === 0) return showToast('There is nothing to download: no outputs.')
  if (made.length > MAX_ZIPPED) return showToast(`One archive takes at most ${MAX_ZIPPED} jobs.`)
  const link = document.createElement('a')
  link.href = zipHref(BASE, made)
  link.download = ''
  link.click()
}

interface SelectionBarProps {
  readonly chosen: readonly string[]
  readonly onClear: () => void
  readonly onRerun: (id: string) => Promise<string | null>
}

export function SelectionBar({ chosen, onClear, onRerun }: SelectionBarProps) {
  if (chosen.length === 0) return null
  const cancelable = chosen.filter((id) => isCancelable(jobOf(id)?.status ?? 'expired'))
  const withOutputs = chosen.filter(hasOutputs)
  async function rerunAll(): Promise<void> {
    let count = 0
    for (const id of chosen) if ((await onRerun(id)) !== null) count++
    if (count > 0) showToast(`${plural(count, 'job')} submitted again.`)
    onClear()
  }
  return (
    <div class="selection-bar" role="region" aria-label="Selection">
      <strong>{plural(chosen.length, 'job')} selected</strong>
      {cancelable.length > 0 && (
        <button type="button" class="button danger" onClick={() => void cancelMany(cancelable).then(onClear)}>
          Cancel {cancelable.length}…
        </button>
      )}
      <button type="button" class="button" onClick={() => void rerunAll()}>
        Run again {chosen.length}
      </button>
      {withOutputs.length > 0 && (
        <button type="button" class="button" onClick={() => downloadJobs(withOutputs)}>
          Download {withOutputs.length}
        </button>
      )}
      {chosen.length === 2 && (
        <a class="button" href={hrefOf(`/jobs/${chosen[0]}/diff/${chosen[1]}`)}>
          Compare
        </a>
      )}
      <button type="button" class="button" onClick={onClear}>
        Clear
      </button>
    </div>
  )
}
