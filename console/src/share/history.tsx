/** The runs that were made in this browser, each with the first picture that it made. */
import { useEffect, useState } from 'preact/hooks'
import { getRun, type SharedRun, ShareError } from './share-api.ts'

interface HistoryProps {
  /** Newest first. */
  readonly runs: readonly string[]
  /** The one that is shown. */
  readonly current: SharedRun | null
  readonly onChoose: (run: string) => void
  readonly onForget: () => void
}

const SHOWN = 12

export function History({ runs, current, onChoose, onForget }: HistoryProps) {
  const [isAll, setAll] = useState(false)
  const listed = isAll ? runs : runs.slice(0, SHOWN)
  return (
    <section aria-label="Your runs">
      <div class="section-head">
        <h2>Your runs</h2>
        <button type="button" class="button small" onClick={onForget}>
          Forget them
        </button>
      </div>
      <p class="dim">They are kept in this browser, and nobody else sees them here.</p>
      <div class="run-history">
        {listed.map((run, index) => (
          <Tile
            key={run}
            run={run}
            number={runs.length - index}
            current={run === current?.run ? current : null}
            onChoose={() => onChoose(run)}
          />
        ))}
        {listed.length < runs.length && (
          <button type="button" class="button small" onClick={() => setAll(true)}>
            All {runs.length}
          </button>
        )}
      </div>
    </section>
  )
}

interface TileProps {
  readonly run: string
  readonly number: number
  /** As it is now, where it is the one that is shown; else it is asked for. */
  readonly current: SharedRun | null
  readonly onChoose: () => void
}

function Tile({ run, number, current, onChoose }: TileProps) {
  const [found, setFound] = useState<SharedRun | null>(null)
  const isChosen = current !== null
  const known = current ?? found
  useEffect(() => {
    if (isChosen) return
    let isGone = false
    getRun(run).then(
      (now) => {
        if (!isGone) setFound(now)
      },
      (thrown: unknown) => {
        if (!(thrown instanceof ShareError)) throw thrown
      },
    )
    return () => {
      isGone = true
    }
  }, [run, isChosen])
  const picture = known?.outputs.find(({ content_type: type }) => type.startsWith('image/'))
  return (
    <button
      type="button"
      class="history-tile"
      aria-pressed={isChosen}
      aria-label={`Run ${number}${known === null ? '' : `, ${known.status}`}`}
      onClick={onChoose}
    >
      {picture === undefined ? <span class="number">{number}</span> : <img class="thumb" src={picture.url} alt="" />}
    </button>
  )
}
