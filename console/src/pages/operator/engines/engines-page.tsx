/** Every engine: how it fares, what it has loaded, and how to take it out of work and back. */
import { type Engine, type EngineDeed, type EngineState, listEngines, tellEngine } from '../../../api/admin.ts'
import { confirm } from '../../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton, type StateLook, StatePill } from '../../../components/state.tsx'
import { Ago, KeyValue, Words } from '../../../components/text.tsx'
import { hrefOf } from '../../../routes.ts'
import { tell } from '../../../state/deeds.ts'
import { usePolled } from '../../../state/resource.ts'
import { session } from '../../../state/session.ts'
import { formatBytes, formatCount, plural } from '../../../text/format.ts'
import { OperatorPage } from '../operator-page.tsx'

const DEEDS: Readonly<Record<EngineDeed, string>> = { cordon: 'Cordon', drain: 'Drain', resume: 'Resume' }

function question(deed: EngineDeed, { id, running }: Engine): { readonly title: string; readonly text: string } {
  const now = running === 0 ? 'It runs nothing at the moment.' : `It runs ${plural(running, 'job')} now.`
  if (deed === 'cordon')
    return { title: `Cordon ${id}?`, text: `${now} They go on to their end; it is given no new ones.` }
  return {
    title: `Drain ${id}?`,
    text: `${now} It is given no new ones; those that take too long are given to other engines and begin there again.`,
  }
}

/** Does it once it is confirmed, and then calls `onDone`. */
export function useEngineDeeds(onDone: () => void) {
  return async (engine: Engine, deed: EngineDeed): Promise<void> => {
    if (deed !== 'resume') {
      const isMeant = await confirm({ ...question(deed, engine), deed: DEEDS[deed], isDangerous: deed === 'drain' })
      if (!isMeant) return
    }
    await tell(async () => {
      await tellEngine(engine.id, deed)
      onDone()
    })
  }
}

export function EnginesPage() {
  const resource = usePolled('operator engines', listEngines)
  const act = useEngineDeeds(resource.reload)
  const hasAccounts = session.value?.features.accounts === true
  return (
    <OperatorPage here="engines" title="Engines">
      <p>
        <a href={hrefOf(hasAccounts ? '/operator/usage?time=7d&by=server&of=gpu' : '/account/usage?by=server')}>
          GPU time by server →
        </a>
      </p>
      <Loaded resource={resource} skeleton={<Skeleton rows={4} kind="card" />}>
        {({ engines }) =>
          engines.length === 0 ? (
            <EmptyState title="No engines">
              <p class="dim">
                An engine runs the jobs. The built-in one, or ComfyUI servers, are named in the configuration.
              </p>
            </EmptyState>
          ) : (
            <div class="engine-cards">
              {engines
                .toSorted((a, b) => engineOrder(a.state) - engineOrder(b.state) || (a.id < b.id ? -1 : 1))
                .map((engine) => (
                  <EngineCard key={engine.id} engine={engine} onDeed={(deed) => void act(engine, deed)} />
                ))}
            </div>
          )
        }
      </Loaded>
    </OperatorPage>
  )
}

export function EngineCard({
  engine,
  onDeed,
}: {
  readonly engine: Engine
  readonly onDeed: (deed: EngineDeed) => void
}) {
  const isOut = engine.state === 'cordoned' || engine.state === 'draining' || engine.state === 'quarantined'
  return (
    <article class="card engine-card" aria-label={`Engine ${engine.id}`}>
      <div class="section-head">
        <h2>
          <a href={hrefOf(`/operator/engines/${encodeURIComponent(engine.id)}`)}>
            <Words text={engine.id} />
          </a>
        </h2>
        <EngineStateWord state={engine.state} />
      </div>
      {engine.reason !== null && (
        <p>
          <Words text={engine.reason} />
        </p>
      )}
      <KeyValue
        pairs={[
          ['Busy', `${engine.running} of ${engine.concurrency}`],
          [
            'Jobs',
            `${formatCount(engine.jobs)}, ${formatCount(engine.failures)} failed, ${formatCount(engine.losses)} lost`,
          ],
          ['Has', `${formatCount(engine.node_classes)} node classes, ${formatCount(engine.weights)} weights`],
          ['Memory', engine.memory_bytes === null ? null : formatBytes(engine.memory_bytes)],
          ['Version', engine.version],
          ['Observed release', describeObserved(engine.observed_release)],
          [
            'Loaded',
            engine.loaded_weights.length === 0 ? null : <Words key="loaded" text={engine.loaded_weights.join(', ')} />,
          ],
          [
            'Last error',
            engine.last_error === null ? null : (
              <span key="error" class="failed-text">
                <Words text={engine.last_error.message} /> <Ago at={engine.last_error.at} />
              </span>
            ),
          ],
        ]}
      />
      <div class="row engine-deeds">
        {!isOut && (
          <button type="button" class="button small" onClick={() => onDeed('cordon')}>
            Cordon…
          </button>
        )}
        {engine.state !== 'draining' && engine.state !== 'quarantined' && (
          <button type="button" class="button small" onClick={() => onDeed('drain')}>
            Drain…
          </button>
        )}
        {isOut && (
          <button type="button" class="button small primary" onClick={() => onDeed('resume')}>
            Resume
          </button>
        )}
      </div>
    </article>
  )
}

function describeObserved(observed: Engine['observed_release']) {
  if (observed === null) return null
  const { id, python, torch, packs } = observed
  const parts = [
    ...(python === null ? [] : [`Python ${python}`]),
    ...(torch === null ? [] : [`torch ${torch}`]),
    packs.length === 0 ? 'no packs' : `packs ${packs.join(', ')}`,
  ]
  return <Words key="observed" text={`${id}: ${parts.join(' · ')}`} />
}

const LOOKS: Readonly<Record<EngineState, StateLook>> = {
  ready: ['check', 'Ready', 'succeeded'],
  starting: ['clock', 'Starting', 'running'],
  standby: ['clock', 'Standby', 'queued'],
  draining: ['stop', 'Draining', 'canceling'],
  cordoned: ['pause', 'Cordoned', 'canceling'],
  quarantined: ['warn', 'Quarantined', 'failed'],
  lost: ['cross', 'Lost', 'failed'],
}

/** Sick ones first. */
const ORDER: readonly EngineState[] = ['lost', 'quarantined', 'draining', 'cordoned', 'starting', 'ready', 'standby']

export function engineOrder(state: EngineState): number {
  return ORDER.indexOf(state)
}

export function EngineStateWord({ state }: { readonly state: EngineState }) {
  return <StatePill look={LOOKS[state]} />
}
