/** A new schedule. */
import { type Signal, useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import { CATCH_UPS, createSchedule, OVERLAPS, type ScheduleWish } from '../../api/schedules.ts'
import { Choice, JsonField, TextField } from '../../components/form-fields.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { ErrorBox } from '../../components/state.tsx'
import { zoneName } from '../../state/preferences.ts'

const OVERLAP_WORDS: Readonly<Record<ScheduleWish['overlap'], string>> = {
  skip: 'leave the new time out',
  queue: 'wait for that job',
  cancel_previous: 'cancel that job',
}
const CATCH_UP_WORDS: Readonly<Record<ScheduleWish['catch_up'], string>> = {
  none: 'are left out',
  one: 'are made up for by one run',
}

interface ScheduleFormProps {
  readonly onClose: () => void
  readonly onMade: () => void
}

export function ScheduleForm({ onClose, onMade }: ScheduleFormProps) {
  const name = useSignal('')
  const cron = useSignal('0 6 * * *')
  const zone = useSignal(zoneName())
  const kind = useSignal<'endpoint' | 'workflow'>('endpoint')
  const endpoint = useSignal('')
  const inputs = useSignal('{}')
  const workflow = useSignal('')
  const overlap = useSignal<ScheduleWish['overlap']>('skip')
  const catchUp = useSignal<ScheduleWish['catch_up']>('none')
  const error = useSignal<ApiError | null>(null)
  async function make(event: Event): Promise<void> {
    event.preventDefault()
    try {
      await createSchedule({
        ...{ name: name.value.trim(), cron: cron.value.trim(), time_zone: zone.value.trim() },
        ...{ overlap: overlap.value, catch_up: catchUp.value },
        ...(kind.value === 'endpoint'
          ? { endpoint: endpoint.value.trim(), inputs: inputs.value }
          : { workflow: workflow.value }),
      })
      onMade()
    } catch (thrown) {
      if (thrown instanceof ApiError) error.value = thrown
      else if (thrown instanceof SyntaxError) error.value = noJson(thrown)
      else throw thrown
    }
  }
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void make(event)}>
        <TextField id="schedule-name" label="Name" value={name} />
        <TextField
          id="schedule-cron"
          label="Minute, hour, day of the month, month, day of the week"
          value={cron}
          placeholder="such as 30 2 * * mon-fri"
        />
        <TextField id="schedule-zone" label="Time zone" value={zone} />
        <Choice
          id="schedule-kind"
          label="It submits"
          value={kind}
          options={[
            ['endpoint', 'an endpoint'],
            ['workflow', 'a workflow'],
          ]}
        />
        {kind.value === 'endpoint' ? (
          <>
            <TextField
              id="schedule-endpoint"
              label="Which endpoint"
              value={endpoint}
              placeholder="name or name@stable"
            />
            <JsonField id="schedule-inputs" label="Its inputs, as JSON" value={inputs} />
          </>
        ) : (
          <JsonField id="schedule-workflow" label="The workflow, in API format" value={workflow} />
        )}
        <Rules overlap={overlap} catchUp={catchUp} />
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="submit" class="button primary">
            Make the schedule
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface RulesProps {
  readonly overlap: Signal<ScheduleWish['overlap']>
  readonly catchUp: Signal<ScheduleWish['catch_up']>
}

function Rules({ overlap, catchUp }: RulesProps) {
  return (
    <>
      <Choice
        id="schedule-overlap"
        label="While the job before goes on"
        value={overlap}
        options={OVERLAPS.map((each) => [each, OVERLAP_WORDS[each]])}
      />
      <Choice
        id="schedule-catch-up"
        label="Times that were missed"
        value={catchUp}
        options={CATCH_UPS.map((each) => [each, CATCH_UP_WORDS[each]])}
      />
    </>
  )
}

function noJson({ message }: SyntaxError): ApiError {
  const nobodyAsked = { status: null, details: null, requestId: null, retryAfterSeconds: null }
  return new ApiError(`This is no JSON: ${message}`, { ...nobodyAsked, code: 'invalid_json' })
}
