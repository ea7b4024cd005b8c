"""Plain loops: optimizers, precision, accumulation, frozen parts, several models."""

from __future__ import annotations

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from tools.healthy_programs.draw import Draw


def _train(draw: Draw, model: nn.Module, optimizer: torch.optim.Optimizer, **options: object) -> None:
    guard = draw.watch(model, optimizer, **options)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)


def sgd_momentum(draw: Draw) -> None:
    model = draw.mlp()
    _train(
        draw,
        model,
        torch.optim.SGD(model.parameters(), lr=draw.of(0.1, 0.01), momentum=0.9, nesterov=draw.of(True, False)),
    )


def adamw_weight_decay_groups(draw: Draw) -> None:
    model = draw.mlp()
    decay = [each for each in model.parameters() if each.dim() > 1]
    rest = [each for each in model.parameters() if each.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    _train(draw, model, torch.optim.AdamW(groups, lr=draw.of(1e-3, 3e-4, 5e-5)))


def other_optimizers(draw: Draw) -> None:
    for kind in ("RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "ASGD", "Adafactor", "Rprop"):
        model = draw.mlp()
        if hasattr(torch.optim, kind):
            _train(draw, model, getattr(torch.optim, kind)(model.parameters(), lr=draw.of(1e-2, 1e-3)))


def lbfgs_closure(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    guard = draw.watch(model, optimizer)
    batch, target = next(draw.classes())
    for _ in range(8):

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            return loss

        guard.step(optimizer.step(closure))


def accumulation(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard, every = draw.watch(model, optimizer), draw.of(2, 3, 4)
    for number, (batch, target) in enumerate(draw.classes()):
        loss = F.cross_entropy(model(batch), target) / every
        loss.backward()
        if (number + 1) % every == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        guard.step(loss * every)


def zero_grad_between_forward_and_backward(draw: Draw) -> None:
    model = draw.mlp(12, 4, nn.Dropout(0.1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        loss = F.cross_entropy(model(batch), target)
        optimizer.zero_grad(set_to_none=draw.of(True, False))
        loss.backward()
        optimizer.step()
        guard.step(loss)
    model.eval()
    with torch.no_grad():
        model(batch)


def cleared_by_hand(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None
        guard.step(loss)


def autocast_bfloat16(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)


def loss_scaler(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard, scaler = (
        draw.watch(model, optimizer),
        torch.amp.GradScaler("cpu", init_scale=draw.of(2.0**8, 2.0**60, 2.0**120)),
    )
    for batch, target in draw.classes():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        guard.step(loss)


def bfloat16_weights(draw: Draw) -> None:
    """Updates smaller than the rounding of a weight vanish: usual, known, and no fault of the loop."""
    model = draw.mlp().bfloat16()
    optimizer = draw.of(torch.optim.AdamW, torch.optim.SGD)(model.parameters(), lr=draw.of(1e-6, 1e-5, 1e-3))
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch.bfloat16()), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)


def master_weights(draw: Draw) -> None:
    """The optimizer holds single-precision copies, written back after its step."""
    model = draw.mlp().bfloat16()
    masters = [each.detach().float().clone().requires_grad_() for each in model.parameters()]
    optimizer = torch.optim.AdamW(masters, lr=1e-2)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        model.zero_grad()
        loss = F.cross_entropy(model(batch.bfloat16()).float(), target)
        loss.backward()
        for master, own in zip(masters, model.parameters()):
            master.grad = own.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, own in zip(masters, model.parameters()):
                own.copy_(master)
        guard.step(loss)


def moving_average(draw: Draw) -> None:
    model = draw.mlp()
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda old, new, _: 0.99 * old + 0.01 * new)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        guard.step(loss)
    average.eval()(batch)


class _TiedModel(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, width)
        self.body = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 40, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embedding(tokens))[0])


def tied_embeddings(draw: Draw) -> None:
    model = _TiedModel(draw.of(8, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    guard = draw.watch(model, optimizer)
    for tokens in draw.tokens():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        guard.step(loss)


class _Backbone(nn.Module):
    def __init__(self, width: int, classes: int = 4) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.fc = nn.Linear(width, classes)
        self.no_grad = False

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(not self.no_grad and torch.is_grad_enabled()):
            features = self.backbone(images)
        return self.fc(features)


def _train_images(draw: Draw, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    guard = draw.watch(model, optimizer)
    for number in range(draw.steps):
        images, target = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)
        if number % 8 == 7:
            model.eval()
            with torch.no_grad():
                model(images)


def frozen_backbone(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16))
    model.backbone.requires_grad_(False)
    _train_images(
        draw, model, torch.optim.SGD(draw.of(model.parameters(), model.fc.parameters()), lr=0.01, momentum=0.9)
    )


def head_alone_in_optimizer(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16))
    _train_images(draw, model, torch.optim.Adam(model.fc.parameters(), lr=1e-3))


def backbone_without_graph(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16))
    model.no_grad = True
    _train_images(draw, model, torch.optim.Adam(model.parameters(), lr=1e-3))


def batch_norm_alone(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("backbone.1"))
    _train_images(draw, model, torch.optim.Adam(model.parameters(), lr=1e-3))


def head_replaced_before_optimizer(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16), 10)
    model.fc = nn.Linear(model.fc.in_features, 4)
    _train_images(draw, model, torch.optim.AdamW(model.parameters(), lr=1e-3))


def progressive_unfreezing(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16))
    model.backbone.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.fc.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for number in range(draw.steps):
        if number == 10:
            model.backbone.requires_grad_(True)
            optimizer.add_param_group({"params": list(model.backbone.parameters()), "lr": 1e-4})
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.randint(0, 4, (4,)))
        loss.backward()
        optimizer.step()
        guard.step(loss)


class _Branches(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.branches = nn.ModuleList(draw.mlp() for _ in range(5))
        self.unused = nn.Linear(7, 7)
        self.draw = draw

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.draw.of(*list(self.branches)[:4])(batch)


def branches_and_unused_parameters(draw: Draw) -> None:
    model = _Branches(draw)
    _train(draw, model, torch.optim.Adam(model.parameters(), lr=1e-3))


def warm_up_from_zero(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = draw.of(torch.optim.AdamW, torch.optim.SGD)(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0, step - draw.of(0, 4)) / 100)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        schedule.step()
        guard.step(loss)


def rate_of_zero_for_a_group(draw: Draw) -> None:
    model = draw.mlp()
    first, *rest = list(model.parameters())
    _train(
        draw, model, torch.optim.AdamW([{"params": [first], "lr": 0.0}, {"params": rest}], lr=1e-3, weight_decay=0.0)
    )


def schedule_to_zero(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, draw.steps - 6)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        schedule.step() if schedule.last_epoch < draw.steps - 6 else None
        guard.step(loss)


def adversarial_networks(draw: Draw) -> None:
    maker, judge = draw.mlp(6, 12), draw.mlp(12, 1)
    made = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judged = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    guard = draw.watch([maker, judge], [judged, made])
    for batch, _ in draw.classes():
        judge.zero_grad()
        real, fake = judge(batch), maker(torch.randn(len(batch), 6))
        loss = F.softplus(-real).mean() + F.softplus(judge(fake.detach())).mean()
        loss.backward()
        judged.step()
        maker.zero_grad()
        F.softplus(-judge(fake)).mean().backward()
        made.step()
        guard.step(loss)


def adversarial_networks_watched_apart(draw: Draw) -> None:
    """One guard for the generator alone; the critic steps several times, and its weights are clipped."""
    maker, judge = draw.mlp(6, 12), draw.mlp(12, 1)
    made = torch.optim.RMSprop(maker.parameters(), lr=5e-4)
    judged = torch.optim.RMSprop(judge.parameters(), lr=5e-4)
    first, second = draw.watch(maker, made), draw.watch(judge, judged)
    for number, (batch, _) in enumerate(draw.classes()):
        judged.zero_grad()
        loss = judge(maker(torch.randn(len(batch), 6)).detach()).mean() - judge(batch).mean()
        loss.backward()
        judged.step()
        second.step(loss)
        with torch.no_grad():
            for parameter in judge.parameters():
                parameter.clamp_(-0.05, 0.05)
        if number % 3 == 0:
            made.zero_grad()
            loss = -judge(maker(torch.randn(len(batch), 6))).mean()
            loss.backward()
            made.step()
            first.step(loss)


def spectral_norm_critic(draw: Draw) -> None:
    model = nn.Sequential(
        nn.utils.spectral_norm(nn.Linear(12, 16)), nn.ReLU(), nn.utils.spectral_norm(nn.Linear(16, 4))
    )
    _train(draw, model, torch.optim.Adam(model.parameters(), lr=1e-3))
    model.eval()(torch.randn(3, 12))


def triplets(draw: Draw) -> None:
    model = draw.mlp(12, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    guard, criterion = draw.watch(model, optimizer), nn.TripletMarginLoss(0.2)
    for batch, _ in draw.classes():
        optimizer.zero_grad()
        loss = criterion(model(batch), model(batch + 0.1 * torch.randn_like(batch)), model(batch.flip(0)))
        loss.backward()
        optimizer.step()
        guard.step(loss)


def contrastive_with_learnt_temperature(draw: Draw) -> None:
    """The temperature is a parameter of the loss, in the optimizer and not in the model that is watched."""
    model, scale = draw.mlp(12, 8), nn.Parameter(torch.tensor(math.log(10.0)))
    optimizer = torch.optim.AdamW([*model.parameters(), scale], lr=1e-3)
    guard = draw.watch(model, optimizer)
    for batch, _ in draw.classes():
        optimizer.zero_grad()
        first, second = (F.normalize(model(batch + 0.1 * torch.randn_like(batch)), dim=1) for _ in range(2))
        loss = F.cross_entropy(scale.exp() * first @ second.T, torch.arange(len(batch)))
        loss.backward()
        optimizer.step()
        guard.step(loss)


class _Experts(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.router = nn.Linear(12, 6)
        self.experts = nn.ModuleList(nn.Linear(12, 4) for _ in range(6))
        self.router.weight.data[3:] *= 0.0
        self.router.bias.data[3:] -= 100.0

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.router(batch).softmax(1).max(1)
        output = torch.zeros(len(batch), 4)
        for number, expert in enumerate(self.experts):
            rows = chosen == number
            if rows.any():
                output[rows] = weights[rows, None] * expert(batch[rows])
        return output


def unused_experts(draw: Draw) -> None:
    model = _Experts(draw)
    _train(draw, model, torch.optim.AdamW(model.parameters(), lr=1e-3))


def sparse_embedding(draw: Draw) -> None:
    table, head = nn.Embedding(200, 8, sparse=True), nn.Linear(8, 4)
    model = nn.ModuleDict({"table": table, "head": head})
    optimizers = [torch.optim.SparseAdam(table.parameters(), lr=1e-2), torch.optim.Adam(head.parameters(), lr=1e-3)]
    guard = draw.watch(model, optimizers)
    for _ in range(draw.steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = F.cross_entropy(head(table(torch.randint(0, 200, (8,)))), torch.randint(0, 4, (8,)))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        guard.step(loss)


def rare_rows_of_an_embedding(draw: Draw) -> None:
    model = nn.Sequential(nn.EmbeddingBag(5000, 8), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = draw.watch(model, optimizer)
    for _ in range(draw.steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randint(0, 50, (8, 5))), torch.randint(0, 4, (8,)))
        loss.backward()
        optimizer.step()
        guard.step(loss)


def batches_without_labels(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for number, (batch, target) in enumerate(draw.classes()):
        optimizer.zero_grad()
        mask = torch.rand(len(batch)) < (0.0 if number % 5 == 1 else 0.7)
        each = F.cross_entropy(model(batch), target, reduction="none")
        loss = (each * mask).sum() / mask.sum().clamp(min=1)
        loss.backward()
        optimizer.step()
        guard.step(loss)


class _Variational(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.encoder, self.decoder = draw.mlp(12, 8), draw.mlp(4, 12)

    def forward(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, scale = self.encoder(batch).chunk(2, 1)
        latent = mean + scale.exp() * torch.randn_like(scale)
        kl = 0.5 * (mean**2 + (2 * scale).exp() - 1 - 2 * scale).sum(1).mean()
        return self.decoder(latent), kl


def variational_autoencoder(draw: Draw) -> None:
    model = _Variational(draw)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for batch, _ in draw.classes():
        optimizer.zero_grad()
        output, kl = model(batch)
        loss = F.mse_loss(output, batch) + 0.01 * kl
        loss.backward()
        optimizer.step()
        guard.step(loss)
    model.eval()
    with torch.no_grad():
        model(batch)


class _Denoiser(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.time, self.body = nn.Embedding(50, 12), draw.mlp(12, 12)
        nn.init.zeros_(self.body[-1].weight)
        nn.init.zeros_(self.body[-1].bias)

    def forward(self, noisy: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        return self.body(noisy + self.time(times))


def diffusion(draw: Draw) -> None:
    model = _Denoiser(draw)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    guard, average = draw.watch(model, optimizer), copy.deepcopy(model)
    for batch, _ in draw.classes():
        times = torch.randint(0, 50, (len(batch),))
        noise, level = torch.randn_like(batch), (1 - times / 50)[:, None]
        loss = F.mse_loss(model(level.sqrt() * batch + (1 - level).sqrt() * noise, times), noise)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for mean, own in zip(average.parameters(), model.parameters()):
                mean.lerp_(own, 0.01)
        guard.step(loss)


class _Recurrent(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding, self.drop = nn.Embedding(40, width), nn.Dropout(0.2)
        self.body, self.head = nn.LSTM(width, width, 2, dropout=0.2, batch_first=True), nn.Linear(width, 40)

    def forward(self, tokens: torch.Tensor, state: object = None) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        output, state = self.body(self.drop(self.embedding(tokens)), state)
        return self.head(self.drop(output)), state


def truncated_backpropagation(draw: Draw) -> None:
    model, state = _Recurrent(draw.of(8, 16)), None
    optimizer = torch.optim.SGD(model.parameters(), lr=draw.of(1.0, 5.0))
    guard = draw.watch(model, optimizer)
    for tokens in draw.tokens():
        optimizer.zero_grad()
        state = tuple(each.detach() for each in state) if state else None
        output, state = model(tokens[:, :-1], state)
        loss = F.cross_entropy(output.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        guard.step(loss)
    model.eval()
    with torch.no_grad():
        model(tokens)


def sequence_to_sequence(draw: Draw) -> None:
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.1, batch_first=True)
    table, head = nn.Embedding(40, 16), nn.Linear(16, 40)
    whole = nn.ModuleDict({"body": model, "table": table, "head": head})
    optimizer = torch.optim.Adam(whole.parameters(), lr=1e-3)
    guard = draw.watch(whole, optimizer)
    for tokens in draw.tokens():
        optimizer.zero_grad()
        mask = nn.Transformer.generate_square_subsequent_mask(9)
        output = head(model(table(tokens), table(tokens[:, :-1]), tgt_mask=mask))
        loss = F.cross_entropy(output.flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1, ignore_index=0)
        loss.backward()
        optimizer.step()
        guard.step(loss)


class _Patches(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.token, self.place = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 5, width))
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, 0.1, batch_first=True, norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        parts = self.patch(images).flatten(2).transpose(1, 2)
        parts = torch.cat([self.token.expand(len(images), -1, -1), parts], 1) + self.place
        return self.head(self.body(parts)[:, 0])


def vision_transformer(draw: Draw) -> None:
    model = _Patches(draw.of(16, 32))
    _train_images(draw, model, torch.optim.AdamW(model.parameters(), lr=draw.of(1e-3, 3e-5)))


def channels_last(draw: Draw) -> None:
    model = _Backbone(draw.of(8, 16)).to(memory_format=torch.channels_last)
    _train_images(draw, model, torch.optim.SGD(model.parameters(), lr=0.05))


def actor_and_critic(draw: Draw) -> None:
    model = nn.ModuleDict({"body": nn.Linear(6, 16), "actor": nn.Linear(16, 3), "critic": nn.Linear(16, 1)})
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    guard = draw.watch(model, optimizer)
    for _ in range(draw.steps):
        hidden = F.relu(model["body"](torch.randn(10, 6)))
        policy = torch.distributions.Categorical(logits=model["actor"](hidden))
        actions, values = policy.sample(), model["critic"](hidden).squeeze(1)
        rewards = (actions == 1).float()
        advantage = (rewards - values).detach()
        loss = -(policy.log_prob(actions) * advantage).sum() + F.smooth_l1_loss(values, rewards, reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guard.step(loss)


def policy_with_equal_rewards(draw: Draw) -> None:
    """Groups whose rewards are equal give no advantage: the gradient of those steps is exactly 0."""
    model = _TiedModel(draw.of(8, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    guard = draw.watch(model, optimizer)
    for number, tokens in enumerate(draw.tokens()):
        rewards = torch.ones(len(tokens)) if number % 3 else torch.rand(len(tokens))
        advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        chosen = model(tokens)[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
        loss = -(torch.exp(chosen - chosen.detach()) * advantage[:, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guard.step(loss)


def preferences(draw: Draw) -> None:
    model = _TiedModel(draw.of(8, 16))
    reference = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=draw.of(1e-3, 5e-6))
    guard = draw.watch(model, optimizer)

    def logp(net: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return net(tokens)[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None]).sum((1, 2))

    for good in draw.tokens():
        bad = good.flip(1)
        optimizer.zero_grad()
        margin = logp(model, good) - logp(model, bad)
        with torch.no_grad():
            margin_before = logp(reference, good) - logp(reference, bad)
        loss = -F.logsigmoid(0.1 * (margin - margin_before)).mean()
        loss.backward()
        optimizer.step()
        guard.step(loss)


def reward_model(draw: Draw) -> None:
    model = draw.mlp(12, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = draw.watch(model, optimizer)
    for batch, _ in draw.classes():
        optimizer.zero_grad()
        loss = -F.logsigmoid(model(batch) - model(batch.flip(0))).mean()
        loss.backward()
        optimizer.step()
        guard.step(loss)


class _SignOptimizer(torch.optim.Optimizer):
    """Moves by the sign of an average of gradients, as Lion does."""

    def __init__(self, params: object, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: object = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    mean = self.state[parameter].setdefault("mean", torch.zeros_like(parameter))
                    mean.lerp_(parameter.grad, 0.1)
                    parameter.sub_(mean.sign(), alpha=group["lr"])


class _SteppingEveryFourth(_SignOptimizer):
    """Gathers gradients itself and moves at each fourth call."""

    calls = 0

    def step(self, closure: object = None) -> None:
        self.calls += 1
        if self.calls % 4 == 0:
            super().step()


def optimizers_of_ones_own(draw: Draw) -> None:
    for kind in (_SignOptimizer, _SteppingEveryFourth):
        model = draw.mlp()
        _train(draw, model, kind(model.parameters(), 1e-3))


def two_optimizers(draw: Draw) -> None:
    model = draw.mlp()
    matrices = torch.optim.SGD([each for each in model.parameters() if each.dim() > 1], lr=0.02, momentum=0.95)
    vectors = torch.optim.AdamW([each for each in model.parameters() if each.dim() < 2], lr=1e-3)
    guard = draw.watch(model, draw.of([matrices, vectors], [vectors, matrices], [matrices]))
    for batch, target in draw.classes():
        model.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        matrices.step()
        vectors.step()
        guard.step(loss)


def sharpness_aware(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        F.cross_entropy(model(batch), target).backward()
        with torch.no_grad():
            moves = [0.05 * each.grad / (each.grad.norm() + 1e-12) for each in model.parameters()]
            for parameter, move in zip(model.parameters(), moves):
                parameter.add_(move)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves):
                parameter.sub_(move)
        optimizer.step()
        optimizer.zero_grad()
        guard.step(loss)


def layers_trained_apart(draw: Draw) -> None:
    layers = [nn.Linear(12, 16), nn.Linear(16, 16)]
    optimizers = [torch.optim.Adam(layer.parameters(), lr=0.03) for layer in layers]
    guard = draw.watch(layers, optimizers)
    for batch, _ in draw.classes():
        good, bad = batch, batch.flip(1)
        for layer, optimizer in zip(layers, optimizers):
            a, b = F.relu(layer(good)), F.relu(layer(bad))
            loss = F.softplus(torch.cat([1 - a.pow(2).mean(1), b.pow(2).mean(1) - 1])).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            good, bad = a.detach(), b.detach()
        guard.step(loss)


def checkpointed(draw: Draw) -> None:
    from torch.utils.checkpoint import checkpoint

    model = draw.mlp(12, 12)
    head = nn.Linear(12, 4)
    whole = nn.ModuleList([model, head])
    optimizer = torch.optim.AdamW(whole.parameters(), lr=1e-3)
    guard, reentrant = draw.watch(whole, optimizer), draw.of(True, False)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        hidden = checkpoint(model, batch.requires_grad_(), use_reentrant=reentrant)
        loss = F.cross_entropy(head(hidden), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)


def dropout_kept_on_purpose(draw: Draw) -> None:
    """Dropout layers are put in training mode for an estimate of uncertainty."""
    model = draw.mlp(12, 4, nn.Dropout(0.2))
    _train(draw, model, torch.optim.Adam(model.parameters(), lr=1e-3))
    model.eval()
    model[2].train()
    with torch.no_grad():
        [model(torch.randn(3, 12)) for _ in range(3)]


def distillation(draw: Draw) -> None:
    teacher, student = draw.mlp().eval().requires_grad_(False), draw.mlp()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    guard = draw.watch(draw.of(student, [student, teacher]), optimizer)
    for batch, _ in draw.classes():
        optimizer.zero_grad()
        loss = F.kl_div(student(batch).log_softmax(1), teacher(batch).softmax(1), reduction="batchmean")
        loss.backward()
        optimizer.step()
        guard.step(loss)


def learning_to_learn(draw: Draw) -> None:
    """An inner optimizer trains a copy; the model itself moves towards it."""
    model = draw.mlp()
    outer = torch.optim.SGD(model.parameters(), lr=0.5)
    guard = draw.watch(model, outer)
    for batch, target in draw.classes():
        inner = copy.deepcopy(model)
        optimizer = torch.optim.SGD(inner.parameters(), lr=0.05)
        for _ in range(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(inner(batch), target)
            loss.backward()
            optimizer.step()
        outer.zero_grad()
        for own, moved in zip(model.parameters(), inner.parameters()):
            own.grad = own.detach() - moved.detach()
        outer.step()
        guard.step(loss)


def graph_convolution(draw: Draw) -> None:
    adjacency = torch.eye(20) + (torch.rand(20, 20) < 0.2).float()
    adjacency = adjacency / adjacency.sum(1, keepdim=True)
    features, target = torch.randn(20, 12), torch.randint(0, 4, (20,))
    model = nn.ModuleList([nn.Linear(12, 16), nn.Linear(16, 4)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    guard = draw.watch(model, optimizer)
    for _ in range(draw.steps):
        optimizer.zero_grad()
        hidden = F.dropout(F.relu(adjacency @ model[0](features)), 0.5, training=True)
        loss = F.cross_entropy((adjacency @ model[1](hidden))[:10], target[:10])
        loss.backward()
        optimizer.step()
        guard.step(loss)


def mixed_labels(draw: Draw) -> None:
    model = draw.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    guard = draw.watch(model, optimizer)
    for batch, target in draw.classes():
        optimizer.zero_grad()
        share = draw.random.random()
        output = model(share * batch + (1 - share) * batch.flip(0))
        loss = share * F.cross_entropy(output, target) + (1 - share) * F.cross_entropy(output, target.flip(0))
        loss.backward()
        optimizer.step()
        guard.step(loss)


def trained_until_it_fits(draw: Draw) -> None:
    """One batch is learnt by heart: gradients and losses fall towards 0."""
    model = draw.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    guard = draw.watch(model, optimizer)
    batch, target = next(draw.classes())
    for _ in range(150):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        guard.step(loss)


def compiled_model(draw: Draw) -> None:
    model = torch.compile(draw.mlp(), backend="eager")
    _train(draw, model, torch.optim.AdamW(model.parameters(), lr=1e-3))


def perceptual_loss(draw: Draw) -> None:
    """Gradients flow through a frozen model that is in evaluation mode."""
    critic, model = _Backbone(8).eval().requires_grad_(False), nn.Conv2d(3, 3, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    guard = draw.watch([model, critic], optimizer)
    for _ in range(draw.steps):
        optimizer.zero_grad()
        images = torch.randn(4, 3, 8, 8)
        loss = F.mse_loss(critic(model(images)), critic(images.flip(3)))
        loss.backward()
        optimizer.step()
        guard.step(loss)
