/** A workflow becomes an endpoint, or the next version of one: what the service proposes, to accept, rename, narrow and order. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ApiError } from '../../../api/client.ts'
import { publishEndpoint } from '../../../api/endpoints.ts'
import { confirm } from '../../../components/overlay/dialog.tsx'
import { ErrorBox, Skeleton } from '../../../components/state.tsx'
import { showToast, Words } from '../../../components/text.tsx'
import { hrefOf, navigate } from '../../../routes.ts'
import { session } from '../../../state/session.ts'
import { may, NotAllowed, WorkflowDrop } from '../endpoints-page.tsx'
import { InputCard, OutputRows, TextField } from './input-card.tsx'
import { change, type Opened, opened, openVersion, toDeclaration, toRow } from './publish-state.ts'

export function PublishPage({ name = '' }: Readonly<Record<string, string>>) {
  const error = useSignal<ApiError | null>(null)
  const isRight = opened.value !== null && (name === '' ? !opened.value.isVersion : opened.value.name === name)
  const isOpening = name !== '' && !isRight && error.value === null
  useEffect(() => {
    if (!isOpening) return
    openVersion(name).catch((thrown: unknown) => {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    })
  }, [name, isOpening])
  const drop =
    name === '' ? (
      <WorkflowDrop label={isRight ? 'Take another file' : 'Choose a workflow'} onOpened={() => undefined} />
    ) : (
      <WorkflowDrop label="Take another file" name={name} onOpened={() => undefined} />
    )
  return (
    <section class="page publish">
      <a class="dim back" href={hrefOf(name === '' ? '/endpoints' : `/endpoints/${encodeURIComponent(name)}`)}>
        ← {name === '' ? 'Endpoints' : name}
      </a>
      <h1>{name === '' ? 'Publish a workflow' : `New version of ${name}`}</h1>
      {may('endpoints:write') ? drop : <NotAllowed scope="endpoints:write" />}
      {error.value !== null && <ErrorBox error={error.value} />}
      {isOpening && <Skeleton rows={6} />}
      {isRight && opened.value !== null && <PublishForm draft={opened.value} />}
    </section>
  )
}

/** The member that a refusal names, such as `inputs.headline.maximum`; null: none of this form. */
function fieldOf(error: ApiError | null): string | null {
  const field = error?.details?.['field']
  return typeof field === 'string' ? field : null
}

function PublishForm({ draft }: { readonly draft: Opened }) {
  const error = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  async function publish(isBreakingMeant: boolean): Promise<void> {
    isBusy.value = true
    error.value = null
    const { name, fileText, note } = draft
    const deployment = draft.deployment.trim() === '' ? null : draft.deployment.trim()
    const where = { deployment, isReleasePinned: deployment !== null && draft.isReleasePinned }
    try {
      const wish = { name, fileText, note, declaration: toDeclaration(draft), isBreakingMeant, ...where }
      const { version, is_new: isNew } = await publishEndpoint(wish)
      showToast(isNew ? `Version ${version.version} is published.` : `This is version ${version.version} already.`)
      opened.value = null
      navigate(`/endpoints/${encodeURIComponent(name)}`)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      if (thrown.code === 'breaking_change' && (await mayBreak(thrown))) return publish(true)
      error.value = thrown
    } finally {
      isBusy.value = false
    }
  }
  const field = fieldOf(error.value)
  const problemAt = (at: string) => (field === at ? (error.value?.message ?? null) : null)
  return (
    <form
      class="stack publish-form"
      onSubmit={(event) => {
        event.preventDefault()
        void publish(false)
      }}
    >
      <Notes draft={draft} />
      {!draft.isVersion && (
        <TextField
          label="Name"
          about="Part of the address: small letters, digits and hyphens"
          text={draft.name}
          problem={problemAt('name')}
          onText={(name) => change({ name })}
        />
      )}
      <TextField label="Title" text={draft.title} onText={(title) => change({ title })} problem={problemAt('title')} />
      <TextField
        label="Description"
        isLong
        text={draft.description}
        onText={(description) => change({ description })}
        problem={problemAt('description')}
      />
      <Inputs draft={draft} field={field} message={error.value?.message ?? ''} />
      <OutputRows outputs={draft.outputs} problemAt={problemAt} />
      {session.value?.features.accounts === true && <Where draft={draft} problemAt={problemAt} />}
      <TextField
        label="Note"
        about="What is new in this version"
        text={draft.note}
        onText={(note) => change({ note })}
        problem={problemAt('note')}
      />
      {error.value !== null && <ErrorBox error={error.value} />}
      <div class="row">
        <button type="submit" class="button primary" disabled={isBusy.value || draft.name === ''}>
          {isBusy.value ? 'Publishing…' : 'Publish'}
        </button>
      </div>
    </form>
  )
}

interface WhereProps {
  readonly draft: Opened
  readonly problemAt: (field: string) => string | null
}

/** Whose workers run it, and whether its version stays with the release that they have now. */
function Where({ draft: { deployment, isReleasePinned }, problemAt }: WhereProps) {
  return (
    <>
      <TextField
        label="Deployment"
        about="The id of the deployment that runs it. Empty: the workers that all share"
        text={deployment}
        onText={(text) => change({ deployment: text })}
        problem={problemAt('deployment') ?? problemAt('pin_release')}
      />
      <label class="row">
        <input
          type="checkbox"
          checked={isReleasePinned && deployment.trim() !== ''}
          disabled={deployment.trim() === ''}
          onChange={(event) => change({ isReleasePinned: event.currentTarget.checked })}
        />
        Run this version on the release that the deployment serves now, or not at all
      </label>
    </>
  )
}

function mayBreak({ details }: ApiError): Promise<boolean> {
  const breaking = (details?.['breaking'] ?? []) as readonly { readonly message: string }[]
  return confirm({
    title: 'This breaks programs that call it',
    text: (
      <>
        <ul>
          {breaking.map(({ message }) => (
            <li key={message}>
              <Words text={message} />
            </li>
          ))}
        </ul>
        <p>Callers that name a version by its number keep what they have.</p>
      </>
    ),
    deed: 'Publish all the same',
    isDangerous: true,
  })
}

function Notes({ draft: { warnings, missing } }: { readonly draft: Opened }) {
  const gone = [...missing.classes.map(({ class_type: name }) => name), ...missing.weights.map(({ name }) => name)]
  return (
    <>
      {gone.length > 0 && (
        <p class="warning" role="status">
          No engine here has <Words text={gone.join(', ')} />. It can be published, and is blocked until one has it.
        </p>
      )}
      {warnings.length > 0 && (
        <details>
          <summary class="warning">What was noticed in the file: {warnings.length}</summary>
          <ul>
            {warnings.map(({ node_id: node, message }, index) => (
              <li key={index}>
                node {node}: <Words text={message} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

interface InputsProps {
  readonly draft: Opened
  readonly field: string | null
  readonly message: string
}

function Inputs({ draft, field, message }: InputsProps) {
  const { inputs, candidates } = draft
  const move = (index: number, by: 1 | -1) => {
    const row = inputs[index]
    change({ inputs: inputs.toSpliced(index, 1).toSpliced(index + by, 0, row) })
  }
  const add = (name: string) => {
    const found = candidates.find((candidate) => candidate.name === name)
    if (found === undefined) return
    change({ inputs: [...inputs, toRow(found, true)], candidates: candidates.filter((each) => each !== found) })
  }
  return (
    <section aria-labelledby="inputs-head">
      <h2 id="inputs-head">Inputs</h2>
      <p class="dim">What is ticked can be set by callers, and nothing else of the workflow.</p>
      {inputs.length === 0 && <p class="dim">None was found in this workflow.</p>}
      <ol class="input-cards">
        {inputs.map((row, index) => (
          <InputCard
            key={row.source.places.map(({ node_id: node, input }) => `${node}.${input}`).join()}
            row={row}
            at={index}
            isFirst={index === 0}
            isLast={index === inputs.length - 1}
            onMove={(by) => move(index, by)}
            onRow={(part) => change({ inputs: inputs.with(index, { ...row, ...part }) })}
            problemAt={(member) => {
              const own = member === '' ? `inputs.${row.name}` : `inputs.${row.name}.${member}`
              return row.isTaken && field === own ? message : null
            }}
          />
        ))}
      </ol>
      {candidates.length > 0 && (
        <label class="row">
          Add an input
          <select class="add-input" value="" onChange={(event) => add(event.currentTarget.value)}>
            <option value="">choose a value of the workflow</option>
            {candidates.map(({ name, title }) => (
              <option key={name} value={name}>
                {name === title ? name : `${name} (${title})`}
              </option>
            ))}
          </select>
        </label>
      )}
    </section>
  )
}
