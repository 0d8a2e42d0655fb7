/** One deployment on a release: how it serves, what is wrong, what it served before, and the way back there. */
import {
  cancelUpdate,
  type Deployment,
  getDeployment,
  listRevisions,
  type Revision,
  rollBack,
} from '../../api/environments.ts'
import { confirm } from '../../components/overlay/dialog.tsx'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Ago, CopyButton, KeyValue, showToast, Words } from '../../components/text.tsx'
import { tell } from '../../state/deeds.ts'
import { usePolled, useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { formatBytes, plural } from '../../text/format.ts'
import { BelowEnvironments, buildHref, EnvironmentState, Reason } from './environments-page.tsx'

export function DeploymentPage({ id = '' }: Readonly<Record<string, string>>) {
  return (
    <BelowEnvironments isAllowed={session.value?.features.deployments ?? false}>
      <Asked key={id} id={id} />
    </BelowEnvironments>
  )
}

function Asked({ id }: { readonly id: string }) {
  const resource = usePolled(`environments deployment ${id}`, (signal) => getDeployment(id, signal))
  return (
    <>
      {resource.data.value === null && <h1>Deployment</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {(deployment) => (
          <>
            <div class="page-head">
              <h1>{deployment.name}</h1>
              <EnvironmentState status={deployment.deletedAt === null ? deployment.status : 'deleted'} />
            </div>
            {deployment.error !== null && <Reason text={deployment.error} />}
            <Pending deployment={deployment} onChanged={resource.reload} />
            <Facts deployment={deployment} />
            <History deployment={deployment} onChanged={resource.reload} />
          </>
        )}
      </Loaded>
    </>
  )
}

interface DeploymentProps {
  readonly deployment: Deployment
  readonly onChanged: () => void
}

const mayWrite = () => session.value?.scopes?.includes('deployments:write') ?? true
const isServing = ({ status }: Deployment) => status === 'ready' || status === 'unhealthy'
const isMoving = ({ pendingUpdate }: Deployment) => pendingUpdate !== null && pendingUpdate.status !== 'failed'

function Pending({ deployment, onChanged }: DeploymentProps) {
  const { id, pendingUpdate, releaseVersion } = deployment
  if (pendingUpdate === null) return null
  const { kind, status, error } = pendingUpdate
  const what = kind === 'rollback' ? 'The rollback' : 'The update'
  if (status === 'failed')
    return (
      <Reason
        title={`${what} failed; release ${releaseVersion} serves as before.`}
        text={error ?? 'no reason was given'}
      />
    )
  return (
    <p class="row" role="status">
      {what} is on its way: <EnvironmentState status={status} />
      {mayWrite() && (
        <button type="button" class="button small" onClick={() => void tell(() => cancelUpdate(id)).then(onChanged)}>
          Cancel it
        </button>
      )}
    </p>
  )
}

function Facts({ deployment }: { readonly deployment: Deployment }) {
  const { buildId, releaseId, releaseVersion, endpointUrl, serving, computeConfig, progress } = deployment
  const { gpuClass, min, max } = computeConfig
  return (
    <KeyValue
      pairs={[
        [
          'Release',
          <a key="release" href={buildHref(buildId, releaseId)}>
            Release {releaseVersion}
          </a>,
        ],
        [
          'Address',
          <span key="address">
            <code>{endpointUrl}</code> <CopyButton text={endpointUrl} label="Copy the address" />
          </span>,
        ],
        [
          'Engines',
          serving !== null &&
            `${serving.capacity.ready} ready, ${serving.capacity.busy} of them busy, ${serving.capacity.starting} starting; ${plural(serving.jobsInQueue, 'job')} waiting`,
        ],
        ['Models', describeStaging(progress)],
        ['Size', `${min} to ${max} on ${gpuClass}`],
      ]}
    />
  )
}

/** How far they have come onto the machine; null: they are there, or nobody knows. */
function describeStaging(progress: Deployment['progress']) {
  const { modelsDone = 0, modelsTotal = 0, bytesDone = 0, bytesTotal, currentModel } = progress ?? {}
  if (modelsTotal === 0) return null
  const bytes =
    bytesTotal === undefined ? formatBytes(bytesDone) : `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`
  const now = currentModel === undefined ? '' : `, now ${currentModel}`
  return <Words key="staging" text={`${modelsDone} of ${modelsTotal} here, ${bytes}${now}`} />
}

function toHow({ kind, fromRevision }: Revision): string {
  if (kind === 'create') return 'made'
  return kind === 'rollback' && fromRevision !== undefined ? `back to revision ${fromRevision}` : 'moved'
}

function History({ deployment, onChanged }: DeploymentProps) {
  const { id, name, revision: current, releaseId, releaseVersion } = deployment
  const resource = useResource(`environments history ${id} ${current}`, (signal) => listRevisions(id, signal))
  async function goBack(to: Revision): Promise<void> {
    const isMeant = await confirm({
      title: `Go back to release ${to.releaseVersion}?`,
      text: isServing(deployment)
        ? `${name} serves release ${releaseVersion} until release ${to.releaseVersion} is ready. No job is refused or lost.`
        : `${name} serves nothing now; it comes up with release ${to.releaseVersion}.`,
      deed: `Go back to release ${to.releaseVersion}`,
      isDangerous: false,
    })
    if (!isMeant) return
    const done = await tell(() => rollBack(deployment, to.revision))
    if (done !== null) showToast(`${name} goes back to release ${to.releaseVersion}.`)
    onChanged()
  }
  const columns: readonly PlainColumn<Revision>[] = [
    { label: 'Revision', cell: ({ revision }) => revision },
    {
      label: 'Release',
      cell: (row) => <a href={buildHref(deployment.buildId, row.releaseId)}>Release {row.releaseVersion}</a>,
    },
    {
      label: 'Way back',
      cell: (row) => {
        if (row.revision === current) return <span class="chip">current</span>
        if (row.releaseId === releaseId) return <span class="dim">the same release</span>
        if (deployment.deletedAt !== null || !mayWrite()) return null
        return (
          <button
            type="button"
            class="button small"
            disabled={isMoving(deployment)}
            aria-label={`Roll back to revision ${row.revision}`}
            onClick={() => void goBack(row)}
          >
            Roll back
          </button>
        )
      },
    },
    { label: 'How', cell: toHow },
    { label: 'When', cell: ({ createdAt }) => <Ago at={createdAt} /> },
    { label: 'By', cell: ({ createdBy }) => <Words text={createdBy} /> },
  ]
  return (
    <section aria-labelledby="environment-history">
      <h2 id="environment-history">History</h2>
      <Loaded key={current} resource={resource} skeleton={<Skeleton rows={2} />}>
        {({ items }) => (
          <PlainTable
            label={`History of ${name}`}
            columns={columns}
            rows={items.toReversed()}
            keyOf={({ revision }) => revision}
          />
        )}
      </Loaded>
    </section>
  )
}
