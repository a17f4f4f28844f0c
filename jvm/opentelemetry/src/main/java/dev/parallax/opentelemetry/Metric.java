package dev.parallax.opentelemetry;

import dev.parallax.recorder.Family;
import io.opentelemetry.sdk.common.InstrumentationScopeInfo;
import io.opentelemetry.sdk.metrics.data.Data;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.metrics.data.MetricDataType;
import io.opentelemetry.sdk.resources.Resource;

/** The points of one name, in the SDK's form. */
final class Metric implements MetricData {
    private static final InstrumentationScopeInfo SCOPE = InstrumentationScopeInfo.create("dev.parallax");

    private final Resource resource;
    private final Family family;
    private final MetricDataType type;
    private final Data<?> data;

    Metric(Resource resource, Family family, MetricDataType type, Data<?> data) {
        this.resource = resource;
        this.family = family;
        this.type = type;
        this.data = data;
    }

    @Override
    public Resource getResource() {
        return resource;
    }

    @Override
    public InstrumentationScopeInfo getInstrumentationScopeInfo() {
        return SCOPE;
    }

    @Override
    public String getName() {
        return family.name();
    }

    @Override
    public String getDescription() {
        return family.help();
    }

    @Override
    public String getUnit() {
        return family.unit();
    }

    @Override
    public MetricDataType getType() {
        return type;
    }

    @Override
    public Data<?> getData() {
        return data;
    }

    @Override
    public String toString() {
        return family.name() + " " + data.getPoints();
    }
}
