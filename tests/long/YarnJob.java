import java.io.File;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** An application master that works until a file appears, and then ends as it should. */
public class YarnJob {
    public static void main(String[] file) throws Exception {
        AMRMClient<AMRMClient.ContainerRequest> manager = AMRMClient.createAMRMClient();
        manager.init(new YarnConfiguration());
        manager.start();
        manager.registerApplicationMaster("", 0, "");
        while (!new File(file[0]).exists()) {
            manager.allocate(0.5f);
            Thread.sleep(500);
        }
        manager.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
    }
}
