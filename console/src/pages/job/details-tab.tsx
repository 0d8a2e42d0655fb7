/** Everything else that is known: metadata, inputs, attempts with their reasons, price, and the same as raw JSON. */
import type { JobDetail } from '../../api/job-detail.ts'
import { Duration, Moment, Money } from '../../components/figures.tsx'
import { InputFiles } from '../../components/jobs/input-files.tsx'
import { KeyValue } from '../../components/key-value.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'

export function DetailsTab({ detail }: { readonly detail: JobDetail }) {
  const pairs = Object.entries(detail.metadata)
  return (
    <div class="details">
      <section class="card" aria-labelledby="details-job">
        <h2 id="details-job">Job</h2>
        <KeyValue
          pairs={[
            ['Id', <code key="id">{detail.id}</code>],
            ['Submitted', <Moment key="at" at={detail.created_at} />],
            ['Started', detail.started_at === null ? null : <Moment key="at" at={detail.started_at} />],
            ['Ended', detail.completed_at === null ? null : <Moment key="at" at={detail.completed_at} />],
            ['Kept until', <Moment key="at" at={detail.expires_at} />],
            ['Client', detail.client === null ? null : <Words key="client" text={detail.client} />],
            ['Key', detail.idempotency_key === null ? null : <Words key="key" text={detail.idempotency_key} />],
            [
              'Batch',
              detail.batch_id === null ? null : (
                <a key="batch" href={hrefOf(`/batches/${detail.batch_id}`)}>
                  all jobs that came with it
                </a>
              ),
            ],
            ['Pool', <Words key="pool" text={detail.pool} />],
            ['Engine', detail.engine === null ? null : <Words key="engine" text={detail.engine} />],
            ['Priority', String(detail.priority)],
            ['Held', detail.price?.held_usd == null ? null : <Money key="held" usd={detail.price.held_usd} />],
            ['Charged', detail.price?.charged_usd == null ? null : <Money key="paid" usd={detail.price.charged_usd} />],
          ]}
        />
      </section>
      <section class="card" aria-labelledby="details-metadata">
        <h2 id="details-metadata">Metadata</h2>
        {pairs.length === 0 ? (
          <p class="dim">none</p>
        ) : (
          <KeyValue
            pairs={pairs.map(([key, value]) => [
              key,
              <a key={key} href={hrefOf(`/jobs?${new URLSearchParams({ [`meta.${key}`]: value })}`)}>
                <Words text={value} />
              </a>,
            ])}
          />
        )}
      </section>
      <section class="card" aria-labelledby="details-inputs">
        <h2 id="details-inputs">Inputs</h2>
        <InputFiles job={detail} isOwn />
      </section>
      <section class="card" aria-labelledby="details-attempts">
        <h2 id="details-attempts">Attempts</h2>
        {detail.attempts.length === 0 && <p class="dim">not started yet</p>}
        <ol class="plain-list">
          {detail.attempts.map((attempt, index) => (
            <li key={index}>
              <span class="number dim">{attempt.number}</span>
              <span>{attempt.engine === null ? '–' : <Words text={attempt.engine} />}</span>
              <Duration from={attempt.from} to={attempt.to} />
              <span class="dim">
                <Words text={attempt.why} />
              </span>
            </li>
          ))}
        </ol>
      </section>
    </div>
  )
}
