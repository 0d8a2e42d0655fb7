/** The service at a glance: what is red comes first, then the queue by pool, then the engines. */
import { getOverview, listEngines, listPools } from '../../api/admin.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { TableWrap } from '../../components/table/table-wrap.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { formatCount, formatSpan, plural } from '../../text/format.ts'
import { EngineStateWord, engineOrder } from './engine-state.tsx'
import { OperatorTabs } from './operator-tabs.tsx'
import { usePolled } from './use-polled.ts'

export function OverviewPage() {
  const resource = usePolled('operator overview', async (signal) => {
    const [overview, { pools }, { engines }] = await Promise.all([
      getOverview(signal),
      listPools(signal),
      listEngines(signal),
    ])
    return { overview, pools, engines }
  })
  return (
    <section class="page operator">
      <h1>Operator</h1>
      <OperatorTabs here="overview" />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {({ overview, pools, engines }) => {
          const sick = engines.filter(({ state }) => state === 'lost' || state === 'quarantined')
          return (
            <>
              {sick.length > 0 && (
                <div class="failure">
                  <p class="failure-message">{plural(sick.length, 'engine')} out of work</p>
                  {sick.map(({ id, reason, state }) => (
                    <p key={id}>
                      <a href={hrefOf('/operator/engines')}>
                        <Words text={id} />
                      </a>{' '}
                      <EngineStateWord state={state} /> <Words text={reason ?? ''} />
                    </p>
                  ))}
                </div>
              )}
              <div class="now-line">
                <Figure value={overview.jobs.running + overview.jobs.canceling} word="running" status="running" />
                <Figure value={overview.jobs.queued} word="waiting" />
                <Figure
                  value={overview.jobs.failed}
                  word="failed"
                  status={overview.jobs.failed > 0 ? 'failed' : undefined}
                />
                <Figure value={overview.jobs.succeeded} word="succeeded" />
                <Figure value={overview.streams} word="streams" />
              </div>
              <h2>Pools</h2>
              <TableWrap label="Pools">
                <table class="plain-table">
                  <thead>
                    <tr>
                      <th scope="col">Pool</th>
                      <th scope="col" class="right">
                        Waiting
                      </th>
                      <th scope="col" class="right">
                        Running
                      </th>
                      <th scope="col" class="right">
                        Workers
                      </th>
                      <th scope="col" class="right">
                        Wanted
                      </th>
                      <th scope="col" class="right">
                        Oldest waits
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {pools.map((pool) => (
                      <tr key={pool.pool}>
                        <td>
                          <Words text={pool.pool} />
                        </td>
                        <td class="right number">{formatCount(pool.queued)}</td>
                        <td class="right number">{pool.running}</td>
                        <td class="right number">{pool.workers}</td>
                        <td class="right number">{pool.wanted_workers}</td>
                        <td class="right number">
                          {pool.oldest_wait_seconds === 0 ? '–' : formatSpan(pool.oldest_wait_seconds * 1000)}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </TableWrap>
              <h2>Engines</h2>
              <ul class="plain-list">
                {engines
                  .toSorted((a, b) => engineOrder(a.state) - engineOrder(b.state))
                  .slice(0, 20)
                  .map((engine) => (
                    <li key={engine.id}>
                      <EngineStateWord state={engine.state} />
                      <a href={hrefOf('/operator/engines')}>
                        <Words text={engine.id} />
                      </a>
                      <span class="dim number">
                        {engine.running} of {engine.concurrency} busy
                      </span>
                    </li>
                  ))}
              </ul>
            </>
          )
        }}
      </Loaded>
    </section>
  )
}

function Figure({ value, word, status }: { readonly value: number; readonly word: string; readonly status?: string }) {
  return (
    <span class="figure">
      <strong class="number" data-status={status}>
        {formatCount(value)}
      </strong>{' '}
      {word}
    </span>
  )
}
