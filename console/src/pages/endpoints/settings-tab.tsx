/** What holds for all versions of an endpoint, and its end. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import { changeEndpoint, type Endpoint, type EndpointChange, removeEndpoint } from '../../api/endpoints.ts'
import { confirm } from '../../components/overlay/dialog.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { showToast } from '../../components/text.tsx'
import { navigate } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { may, NotAllowed, type TabProps } from './endpoints-page.tsx'
import { LimitFields, toLimits, toLimitTexts } from './limit-fields.tsx'
import { TextField } from './publish/input-card.tsx'

export function SettingsTab({ endpoint, onChanged }: TabProps) {
  const title = useSignal(endpoint.title)
  const description = useSignal(endpoint.description)
  const models = useSignal(endpoint.models.join('\n'))
  const callers = useSignal(endpoint.callers.join('\n'))
  const isTool = useSignal(endpoint.tool)
  const limits = useSignal(toLimitTexts(endpoint.limits))
  const error = useSignal<ApiError | null>(null)
  async function save(change: EndpointChange): Promise<void> {
    error.value = null
    try {
      await changeEndpoint(endpoint, change)
      showToast('Saved.')
      onChanged()
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  if (!may('endpoints:write')) return <NotAllowed scope="endpoints:write" />
  const field = error.value?.details?.['field']
  const problemAt = (at: string) => (field === at ? (error.value?.message ?? null) : null)
  return (
    <form
      class="stack publish-form"
      onSubmit={(event) => {
        event.preventDefault()
        const texts = { title: title.value, description: description.value }
        const names = { models: toList(models.value), callers: toList(callers.value) }
        void save({ ...texts, ...names, tool: isTool.value, limits: toLimits(limits.value) })
      }}
    >
      <TextField
        label="Title"
        text={title.value}
        problem={problemAt('title')}
        onText={(text) => (title.value = text)}
      />
      <TextField
        label="Description"
        isLong
        text={description.value}
        problem={problemAt('description')}
        onText={(text) => (description.value = text)}
      />
      <TextField
        label="Model names"
        about="Further names under which image clients ask for it, one in a line"
        isLong
        text={models.value}
        problem={problemAt('models')}
        onText={(text) => (models.value = text)}
      />
      <TextField
        label="Other accounts that may call it"
        about="One id in a line, or * for every account. They call it at their own cost, and do not see the workflow."
        isLong
        text={callers.value}
        problem={problemAt('callers')}
        onText={(text) => (callers.value = text)}
      />
      <ToolSwitch isOn={isTool.value} onSwitch={(isOn) => (isTool.value = isOn)} />
      <LimitFields
        texts={limits.value}
        onTexts={(texts) => {
          limits.value = texts
        }}
      />
      {error.value !== null && <ErrorBox error={error.value} />}
      <div class="row">
        <button type="submit" class="button primary">
          Save
        </button>
        <Deeds endpoint={endpoint} onState={(state) => void save({ state })} />
      </div>
    </form>
  )
}

function ToolSwitch({ isOn, onSwitch }: { readonly isOn: boolean; readonly onSwitch: (isOn: boolean) => void }) {
  return (
    <label class="row">
      <input type="checkbox" checked={isOn} onChange={(event) => onSwitch(event.currentTarget.checked)} />A tool for
      agents
    </label>
  )
}

/** One in a line, or between commas. */
function toList(text: string): string[] {
  const names = text.split(/[\n,]/).map((name) => name.trim())
  return names.filter((name) => name !== '')
}

interface DeedsProps {
  readonly endpoint: Endpoint
  readonly onState: (state: 'ready' | 'stopped') => void
}

function Deeds({ endpoint: { name, state }, onState }: DeedsProps) {
  async function remove(): Promise<void> {
    const isMeant = await confirm({
      title: `Delete ${name}?`,
      text: 'Calls are refused from now on, and all its versions are gone. Runs that were made stay.',
      deed: 'Delete',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(async () => {
      await removeEndpoint(name)
      navigate('/endpoints')
    })
  }
  return (
    <>
      <button type="button" class="button" onClick={() => onState(state === 'stopped' ? 'ready' : 'stopped')}>
        {state === 'stopped' ? 'Start it' : 'Stop it'}
      </button>
      <button type="button" class="button danger" onClick={() => void remove()}>
        Delete…
      </button>
    </>
  )
}
