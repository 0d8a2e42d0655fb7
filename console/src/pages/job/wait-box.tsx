/** Why it waits: its place, what it needs, which engines have that, which limit holds it, and about how long. */
import type { Wait, WaitEngine } from '../../api/job-detail.ts'
import { ordinal } from '../../components/jobs/job-parts.tsx'
import { Ago, Words } from '../../components/text.tsx'
import { formatEstimate } from '../../text/format.ts'

const REASONS: Readonly<Record<Wait['reason'], string>> = {
  paused: 'Nothing is taken from this queue.',
  held: 'It is held until its time.',
  account_limit: 'The account runs as many jobs as it may at once.',
  no_engine: 'No engine can run it.',
  engines_away: 'The engines that can run it are away.',
  engines_busy: 'The engines that can run it are busy.',
  behind_others: 'Others stand before it.',
}

const PAUSED_BY: Readonly<Record<Wait['pauses'][number]['by'], string>> = {
  service: 'The service was paused',
  pool: 'Its pool was paused',
  operator: 'An operator paused this account',
  account: 'This account paused itself',
}

export function waitReason({ reason }: Wait): string {
  return REASONS[reason] ?? reason
}

export function WaitBox({ wait }: { readonly wait: Wait }) {
  const { position, needs, engines, limit, pauses, held_until: heldUntil, estimate_seconds: estimate } = wait
  return (
    <div class="wait card" role="group" aria-label="Why it waits">
      <p class="wait-reason">
        {position !== null && <strong>{ordinal(position)} in the queue. </strong>}
        <Words text={waitReason(wait)} />
        {estimate !== null && <span class="number"> About {formatEstimate(estimate).slice(1)} to go.</span>}
      </p>
      {pauses.map(({ by, reason, since }) => (
        <p key={by} class="dim">
          {PAUSED_BY[by]} <Ago at={since} />
          {reason !== null && ': '}
          {reason !== null && <Words text={reason} />}
        </p>
      ))}
      {heldUntil !== null && <p class="dim">It does not run before {new Date(heldUntil).toLocaleString()}.</p>}
      {needs.weights.length > 0 && (
        <p class="dim">
          Needs{' '}
          {needs.weights.map((name) => (
            <code key={name} class="need">
              <Words text={name} />
            </code>
          ))}
        </p>
      )}
      {engines.length > 0 && (
        <ul class="wait-engines">
          {engines.map((engine) => (
            <EngineLine key={engine.id} engine={engine} />
          ))}
        </ul>
      )}
      {limit !== null && (
        <p class="dim">
          The account runs {limit.running} of {limit.max_running} at once.
        </p>
      )}
    </div>
  )
}

function EngineLine({ engine }: { readonly engine: WaitEngine }) {
  const { id, state, is_able: isAble, running, slots, why_not: why } = engine
  return (
    <li data-able={isAble}>
      <strong>
        <Words text={id} />
      </strong>
      <span class="dim">{isAble ? `can run it · ${state} · ${running} of ${slots} busy` : 'cannot run it'}</span>
      {why !== null && (
        <span class="dim">
          <Words text={why} />
        </span>
      )}
    </li>
  )
}
