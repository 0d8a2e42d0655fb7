/** Deployments: their state, what they run, and how to start and stop them. */
import { type Deployment, listDeployments, tellDeployment } from '../../api/admin.ts'
import { confirm } from '../../components/overlay/dialog.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { Words } from '../../components/text.tsx'
import { tell } from '../../state/deeds.ts'
import { usePolled } from '../../state/resource.ts'
import { formatCount, plural } from '../../text/format.ts'
import { OperatorPage } from './operator-page.tsx'

export function DeploymentsPage() {
  const resource = usePolled('operator deployments', listDeployments)
  async function act(deployment: Deployment, deed: 'start' | 'stop'): Promise<void> {
    const { id, use } = deployment
    const isMeant =
      deed === 'start' ||
      (await confirm({
        title: `Stop ${id}?`,
        text: `${plural(use.running, 'job')} that run and ${formatCount(use.queued)} that wait go on to their end; new ones are refused.`,
        deed: 'Stop',
        isDangerous: true,
      }))
    if (!isMeant) return
    await tell(async () => {
      await tellDeployment(id, deed)
      resource.reload()
    })
  }
  return (
    <OperatorPage here="deployments" title="Deployments">
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {({ deployments }) =>
          deployments.length === 0 ? (
            <EmptyState title="No deployments">
              <p class="dim">
                <code>atelier deployments create</code> makes one.
              </p>
            </EmptyState>
          ) : (
            <ul class="plain-list">
              {deployments.map((deployment) => (
                <li key={deployment.id}>
                  <span class="asset-name">
                    <Words text={deployment.id} />
                    <span class="dim">
                      {deployment.state} · {deployment.use.running} running · {deployment.use.queued} waiting ·{' '}
                      {plural(deployment.workers, 'worker')} · <Words text={deployment.path} />
                    </span>
                  </span>
                  {deployment.state === 'stopped' ? (
                    <button type="button" class="button small" onClick={() => void act(deployment, 'start')}>
                      Start
                    </button>
                  ) : (
                    <button type="button" class="button small danger" onClick={() => void act(deployment, 'stop')}>
                      Stop…
                    </button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </OperatorPage>
  )
}
