/** Budgets of the account: how much of each is spent, new ones, and an end to those that it made itself. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import {
  BUDGET_PERIODS,
  BUDGET_SUBJECTS,
  type Budget,
  type BudgetWish,
  createBudget,
  deleteBudget,
  listBudgets,
} from '../../api/money.ts'
import { Choice, Switch, TextField } from '../../components/form-fields.tsx'
import { Icon } from '../../components/icon.tsx'
import { confirm, Dialog } from '../../components/overlay/dialog.tsx'
import { EmptyState, ErrorBox, Loaded, Skeleton } from '../../components/state.tsx'
import { Moment, Money, Words } from '../../components/text.tsx'
import { query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { zoneName } from '../../state/preferences.ts'
import { useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'
import { AccountTabs } from './account-page.tsx'

export function BudgetsPage() {
  const resource = useResource('budgets', listBudgets)
  const isMaking = query.value.get('new') === '1'
  const openNew = () => setQuery({ new: '1' })
  const closeNew = () => setQuery({ new: null }, { replace: true })
  async function remove({ id, name }: Budget): Promise<void> {
    const isMeant = await confirm({
      title: `Remove “${toMarkedText(name)}”?`,
      text: 'Nothing is refused for it any more, and nobody is told of it.',
      deed: 'Remove',
      isDangerous: true,
    })
    if (!isMeant) return
    await tell(async () => {
      await deleteBudget(id)
      resource.reload()
    })
  }
  return (
    <section class="page budgets">
      <div class="page-head">
        <h1>Budgets</h1>
        <button type="button" class="button primary" onClick={openNew}>
          <Icon name="plus" /> New budget
        </button>
      </div>
      <AccountTabs here="budgets" />
      <Loaded resource={resource} skeleton={<Skeleton rows={3} />}>
        {({ budgets }) =>
          budgets.length === 0 ? (
            <EmptyState title="No budgets yet">
              <p class="dim">
                A budget says how much may be spent in an hour, a day, a week or a month: by the account, or by one of
                its keys, models, endpoints or tags.
              </p>
              <button type="button" class="button primary" onClick={openNew}>
                Make the first one
              </button>
            </EmptyState>
          ) : (
            <ul class="plain-list card-list">
              {budgets.map((budget) => (
                <OneBudget key={budget.id} budget={budget} onRemove={() => void remove(budget)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isMaking && (
        <NewBudget
          onClose={closeNew}
          onMade={() => {
            closeNew()
            resource.reload()
          }}
        />
      )}
    </section>
  )
}

function OneBudget({ budget, onRemove }: { readonly budget: Budget; readonly onRemove: () => void }) {
  const { name, subject, value, rolling, period, hard, set_by: setBy, resets_at: resetsAt } = budget
  const [spent, limit] = [Number(budget.spent_usd), Number(budget.limit_now_usd)]
  return (
    <li>
      <span class="asset-name">
        <Words text={name} /> {!hard && <span class="chip quiet">only tells</span>}
        {setBy === 'operator' && <span class="chip quiet">set by the operator</span>}
        <span class="dim">
          {value === null ? 'whole account' : `${subject} ${value}`} · {rolling ? `any ${period}` : `a ${period}`} ·
          room again <Moment at={resetsAt} />
        </span>
        <meter
          min={0}
          max={Math.max(limit, 0.000001)}
          value={Math.min(spent, limit)}
          aria-label={`${toMarkedText(name)}: ${budget.spent_usd} of ${budget.limit_now_usd} USD`}
        />
      </span>
      <span>
        <Money usd={budget.spent_usd} /> of <Money usd={budget.limit_now_usd} />
      </span>
      {setBy === 'account' && (
        <button
          type="button"
          class="button small danger"
          aria-label={`Remove ${toMarkedText(name)}`}
          onClick={onRemove}
        >
          Remove
        </button>
      )}
    </li>
  )
}

const SUBJECT_WORDS: Readonly<Record<BudgetWish['subject'], string>> = {
  account: 'the whole account',
  key: 'a key, by its id',
  model: 'a model, such as kling/*',
  endpoint: 'an endpoint',
  tag: 'a tag',
}

function NewBudget({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: () => void }) {
  const name = useSignal('')
  const subject = useSignal<BudgetWish['subject']>('account')
  const value = useSignal('')
  const limit = useSignal('')
  const period = useSignal<BudgetWish['period']>('month')
  const isRolling = useSignal(false)
  const isHard = useSignal(true)
  const error = useSignal<ApiError | null>(null)
  async function make(event: Event): Promise<void> {
    event.preventDefault()
    try {
      await createBudget({
        ...{ name: name.value.trim(), subject: subject.value, limit_usd: limit.value.trim(), period: period.value },
        ...{ rolling: isRolling.value, hard: isHard.value },
        ...(subject.value !== 'account' && { value: value.value.trim() }),
        ...(!isRolling.value && { time_zone: zoneName() }),
      })
      onMade()
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
    }
  }
  return (
    <Dialog title="New budget" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void make(event)}>
        <TextField id="budget-name" label="Name" value={name} />
        <Choice
          id="budget-subject"
          label="For"
          value={subject}
          options={BUDGET_SUBJECTS.map((each) => [each, SUBJECT_WORDS[each]])}
        />
        {subject.value !== 'account' && <TextField id="budget-value" label={`Which ${subject.value}`} value={value} />}
        <TextField id="budget-limit" label="At most, in USD" value={limit} placeholder="such as 12.50" />
        <Choice
          id="budget-period"
          label="In"
          value={period}
          options={BUDGET_PERIODS.map((each) => [each, `a ${each}`])}
        />
        <fieldset class="choice">
          <legend>How</legend>
          <Switch value={isRolling} label="counted back from each call, not by the calendar" />
          <Switch value={isHard} label="what goes beyond it is refused" />
        </fieldset>
        {error.value !== null && <ErrorBox error={error.value} />}
        <div class="dialog-deeds">
          <button type="submit" class="button primary">
            Make the budget
          </button>
        </div>
      </form>
    </Dialog>
  )
}
