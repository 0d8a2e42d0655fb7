/** What an engine loads before its first job, and a way to have what it has loaded now loaded then. */
import { deleteEngineWarm, type EngineWarm, getEngineWarm, putEngineWarm } from '../../../api/admin.ts'
import { Loaded, Skeleton } from '../../../components/state.tsx'
import { showToast, Words } from '../../../components/text.tsx'
import { tell } from '../../../state/deeds.ts'
import { useResource } from '../../../state/resource.ts'

interface WarmBoxProps {
  readonly id: string
  readonly loaded: readonly string[]
  readonly onChanged: () => void
}

export function WarmBox({ id, loaded, onChanged }: WarmBoxProps) {
  const resource = useResource(`warm ${id}`, (signal) => getEngineWarm(id, signal))
  async function act(deed: () => Promise<EngineWarm>, done: string): Promise<void> {
    if ((await tell(deed)) === null) return
    showToast(done)
    resource.reload()
    onChanged()
  }
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={1} />}>
      {(warm) => {
        const isNothing = warm.weights.length === 0 && warm.workflow === null
        const named = [...warm.weights, ...(warm.workflow === null ? [] : ['what a workflow needs'])].join(', ')
        return (
          <p>
            {isNothing ? (
              'It is given work as soon as it answers.'
            ) : (
              <>
                Before its first job it loads <Words text={named} />.
              </>
            )}{' '}
            {!isNothing && (
              <button
                type="button"
                class="button small"
                onClick={() => void act(() => putEngineWarm(id, warm), 'It loads that again.')}
              >
                Load now
              </button>
            )}{' '}
            {isNothing && loaded.length > 0 && (
              <button
                type="button"
                class="button small"
                onClick={() =>
                  void act(() => putEngineWarm(id, { weights: loaded, workflow: null }), 'It loads these every time.')
                }
              >
                Always load what it has now
              </button>
            )}{' '}
            {!isNothing && (
              <button
                type="button"
                class="button small"
                onClick={() => void act(() => deleteEngineWarm(id), 'It loads nothing beforehand any more.')}
              >
                Load nothing beforehand
              </button>
            )}
          </p>
        )
      }}
    </Loaded>
  )
}
